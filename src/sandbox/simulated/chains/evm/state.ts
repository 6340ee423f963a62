import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, bytesToHex, hexToBytes, utf8ToBytes } from '../../../../engine/crypto/encoding.ts';
import type { ContractAccounts, Ledger, Movement } from '../ledger.ts';
import type { Block } from '../pool.ts';
import type { ChainStore } from '../store.ts';
import type { World } from '../world.ts';
import type { ContractState } from './contracts/contract-state.ts';
import type { Genesis } from './contracts/genesis.ts';

/**
 * The state of one EVM chain, stored or as an execution sees it. Addresses are lower-case 0x hex. The native asset of
 * accounts is in the ledger, their nonces and delegations are in `accounts`. Balances of the sandbox's tokens are in the
 * storage of their contracts, also through the ledger.
 */
export interface EvmState {
  readonly world: World;
  readonly caip2: string;
  readonly chainId: bigint;
  readonly baseFee: bigint;
  readonly ledger: Ledger;
  readonly accounts: ContractAccounts;
  /** Facts about contracts that the sandbox keeps besides their storage. Executions do not see them. */
  readonly contracts: ContractState;
  readonly bytecode: Bytecode;
  readonly genesis: Genesis;
  /** Registers a token unless it exists. */
  registerToken(token: { address: string; decimals: number; symbol: string }): void;
  /** Adds a deposit to the list of transfers. The caller updates the ledger. Returns its hash. */
  recordDeposit(deposit: Movement & { block: Block }): string;
}

/** The code of contracts, and the slots that it writes. Slots and words are 64 hex digits. */
export interface Bytecode {
  /** Empty without a contract. */
  code(address: string): Uint8Array;
  setCode(address: string, code: Uint8Array): void;
  /** Zero for a slot that was never written. */
  word(address: string, slot: string): string;
  setWord(address: string, slot: string, word: string): void;
}

export const ZERO_WORD = '0'.repeat(64);

const NO_CODE = new Uint8Array();
const MOST_CACHED = 1_000;

/** The code and the slots of a chain: what is stored, and where nothing is, what the chain began with. */
export function storedBytecode(
  store: ChainStore,
  caip2: string,
  genesis: Pick<Genesis, 'account'>,
): Bytecode {
  // The same array for the same code, so that its hash is calculated once.
  const cached = new Map<string, { text: string; code: Uint8Array }>();
  return {
    code(address) {
      const row = store.first<{ code: string }>(
        'select code from evm_code where caip2 = ? and address = ?',
        ...[caip2, address],
      );
      if (row === undefined) return genesis.account(address)?.code ?? NO_CODE;
      const known = cached.get(address);
      if (known?.text === row.code) return known.code;
      if (cached.size >= MOST_CACHED) cached.clear();
      const code = hexToBytes(row.code);
      cached.set(address, { text: row.code, code });
      return code;
    },
    setCode: (address, code) =>
      store.run('insert or replace into evm_code values (?, ?, ?)', caip2, address, bytesToHex(code)),
    word: (address, slot) =>
      store.first<{ word: string }>(
        'select word from evm_storage where caip2 = ? and address = ? and slot = ?',
        ...[caip2, address, slot],
      )?.word ??
      genesis.account(address)?.words.get(slot) ??
      ZERO_WORD,
    setWord: (address, slot, word) =>
      word === ZERO_WORD && genesis.account(address)?.words.has(slot) !== true
        ? store.run(
            'delete from evm_storage where caip2 = ? and address = ? and slot = ?',
            ...[caip2, address, slot],
          )
        : store.run('insert or replace into evm_storage values (?, ?, ?, ?)', caip2, address, slot, word),
  };
}

/**
 * The code at an address as bytecode sees it: empty for a plain account, `ef0100` || contract for a delegated one
 * (EIP-7702).
 */
export function codeAt({ accounts, bytecode }: EvmState, address: string): Uint8Array {
  const delegate = accounts.delegate(address);
  return delegate === undefined ? bytecode.code(address) : hexToBytes(`ef0100${delegate.slice(2)}`);
}

/** The hash of what the simulation names in words. */
export function hashOf(text: string): string {
  return bytesTo0xHex(keccak_256(utf8ToBytes(text)));
}
