import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, bytesToHex, hexToBytes, utf8ToBytes } from '../../../../engine/crypto/encoding.ts';
import type { ContractAccounts, Ledger, Movement } from '../ledger.ts';
import type { Block } from '../pool.ts';
import type { ChainStore } from '../store.ts';
import type { World } from '../world.ts';
import type { Beginning } from './beginning.ts';
import type { ContractState } from './contracts/contract-state.ts';
import type { Genesis } from './contracts/genesis.ts';
import type { Upstream } from './upstream.ts';

/**
 * The state of one EVM chain, either the stored state or the state in an execution. Addresses are lower-case 0x hex.
 * The ledger holds the native asset of accounts; `accounts` holds their nonces and delegations. The ledger reads
 * balances of the sandbox's tokens from the storage of their contracts.
 */
export interface EvmState {
  readonly world: World;
  readonly caip2: string;
  readonly chainId: bigint;
  readonly baseFee: bigint;
  readonly ledger: Ledger;
  readonly accounts: ContractAccounts;
  /** Facts about contracts that are not part of their storage. Executions do not see them. */
  readonly contracts: ContractState;
  readonly bytecode: Bytecode;
  readonly genesis: Genesis;
  /** The real chain that this one continues. */
  readonly upstream: Upstream | undefined;
  /** Registers a token unless it is registered already. */
  registerToken(token: { address: string; decimals: number; symbol: string }): void;
  /** Adds a deposit to the list of transfers and returns its hash. The caller updates the ledger. */
  recordDeposit(deposit: Movement & { block: Block }): string;
}

/** The code of contracts, and the slots that their code writes. Slots and words are 64 hex digits. */
export interface Bytecode {
  /** Returns empty bytes when there is no contract. */
  code(address: string): Uint8Array;
  setCode(address: string, code: Uint8Array): void;
  /** Returns zero for a slot that was never written. */
  word(address: string, slot: string): string;
  setWord(address: string, slot: string, word: string): void;
}

export const ZERO_WORD = '0'.repeat(64);

const MAX_CACHED = 1_000;

/** The code and the slots of a chain. Reads return the stored value, or the initial value when nothing is stored. */
export function storedBytecode(
  store: ChainStore,
  caip2: string,
  begun: Pick<Beginning, 'code' | 'word'>,
): Bytecode {
  // Equal code is always the same array, so that its hash is calculated once.
  const cached = new Map<string, { text: string; code: Uint8Array }>();
  return {
    code(address) {
      const row = store.first<{ code: string }>(
        'select code from evm_code where caip2 = ? and address = ?',
        ...[caip2, address],
      );
      if (row === undefined) return begun.code(address);
      const known = cached.get(address);
      if (known?.text === row.code) return known.code;
      if (cached.size >= MAX_CACHED) cached.clear();
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
      )?.word ?? begun.word(address, slot),
    setWord: (address, slot, word) =>
      word === ZERO_WORD && begun.word(address, slot) === ZERO_WORD
        ? store.run(
            'delete from evm_storage where caip2 = ? and address = ? and slot = ?',
            ...[caip2, address, slot],
          )
        : store.run('insert or replace into evm_storage values (?, ?, ?, ?)', caip2, address, slot, word),
  };
}

/**
 * The code at an address, as bytecode reads it: empty for a plain account, `ef0100` || contract for a delegated
 * account (EIP-7702).
 */
export function codeAt({ accounts, bytecode }: EvmState, address: string): Uint8Array {
  const delegate = accounts.delegate(address);
  return delegate === undefined ? bytecode.code(address) : hexToBytes(`ef0100${delegate.slice(2)}`);
}

/** The hash of a text that identifies an object of the simulation. */
export function hashOf(text: string): string {
  return bytesTo0xHex(keccak_256(utf8ToBytes(text)));
}
