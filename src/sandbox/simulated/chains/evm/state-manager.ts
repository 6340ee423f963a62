import type { StateManagerInterface } from '@ethereumjs/common';
import { Account, type Address, KECCAK256_NULL, KECCAK256_RLP, unpadBytes } from '@ethereumjs/util';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, bytesToHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { NATIVE } from '../ledger.ts';
import type { Overlay } from './overlay.ts';
import { codeAt } from './state.ts';

/**
 * Adapts the state of an overlay to the interface through which @ethereumjs/evm reads and writes.
 *
 * @param overlay returns the overlay of the running execution.
 * @param pause lets other work run if a pause is due.
 */
export function stateManagerOf(overlay: () => Overlay, pause: () => Promise<void>): StateManagerInterface {
  const hashes = new WeakMap<Uint8Array, Uint8Array>();
  const hashOfCode = (code: Uint8Array): Uint8Array => {
    if (code.length === 0) return KECCAK256_NULL;
    const known = hashes.get(code) ?? keccak_256(code);
    hashes.set(code, known);
    return known;
  };
  const stateNow = () => overlay().state;
  /** Returns the code of an account. Reads the whole account, because a trace shows it. */
  const codeOf = (address: Address): Uint8Array => {
    const { accounts, ledger } = stateNow();
    const key = textOf(address);
    accounts.nonce(key, '');
    ledger.balance(key, NATIVE);
    return codeAt(stateNow(), key);
  };
  const manager: StateManagerInterface = {
    async getAccount(address) {
      const { accounts, ledger } = stateNow();
      const key = textOf(address);
      const [nonce, balance, code] = [
        accounts.nonce(key, ''),
        ledger.balance(key, NATIVE),
        codeAt(stateNow(), key),
      ];
      if (nonce === 0 && balance === 0n && code.length === 0) return undefined;
      return new Account(BigInt(nonce), balance, KECCAK256_RLP, hashOfCode(code));
    },
    async putAccount(address, account) {
      const { accounts, ledger } = stateNow();
      const key = textOf(address);
      const { nonce = 0n, balance = 0n } = account ?? {};
      if (accounts.nonce(key, '') !== Number(nonce)) accounts.setNonce(key, '', Number(nonce));
      if (ledger.balance(key, NATIVE) !== balance) ledger.setBalance(key, NATIVE, balance);
    },
    async deleteAccount(address) {
      await manager.putAccount(address);
      overlay().erase(textOf(address));
    },
    async modifyAccountFields(address, { nonce, balance }) {
      const account = (await manager.getAccount(address)) ?? new Account();
      if (nonce != null) account.nonce = nonce;
      if (balance != null) account.balance = balance;
      await manager.putAccount(address, account);
    },
    putCode: async (address, code) => stateNow().bytecode.setCode(textOf(address), code),
    getCode: async (address) => codeOf(address),
    getCodeSize: async (address) => codeOf(address).length,
    async getStorage(address, slot) {
      await pause();
      return unpadBytes(hexToBytes(stateNow().bytecode.word(textOf(address), bytesToHex(slot))));
    },
    putStorage: async (address, slot, word) =>
      stateNow().bytecode.setWord(textOf(address), bytesToHex(slot), bytesToHex(word).padStart(64, '0')),
    // A new contract has no storage yet, because its address was never used.
    clearStorage: async () => undefined,
    // Called once for each message. A recursion pauses here, because it executes few of the jumps at which loops pause.
    async checkpoint() {
      await pause();
      overlay().checkpoint();
    },
    commit: async () => overlay().commit(),
    revert: async () => overlay().revert(),
    originalStorageCache: {
      get: async (address, slot) =>
        unpadBytes(hexToBytes(overlay().originalWord(textOf(address), bytesToHex(slot)))),
      clear: () => undefined,
    },
    // CHOICE: simulated chains have no state roots.
    getStateRoot: async () => new Uint8Array(32),
    setStateRoot: async () => undefined,
    hasStateRoot: async () => false,
    clearCaches: () => undefined,
    shallowCopy: () => manager,
  };
  return manager;
}

/** Returns lower-case 0x hex. */
export function textOf(address: Address): string {
  return bytesTo0xHex(address.bytes);
}
