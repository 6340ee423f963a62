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
 * The state of one EVM chain, either as stored or as seen by an execution. Addresses are lower-case 0x hex. `ledger`
 * has the accounts' balances: those of the native asset, and those of the sandbox's tokens, which it reads from the
 * storage of their contracts. `accounts` has their nonces and delegations.
 */
export interface EvmState {
  readonly world: World;
  readonly caip2: string;
  readonly chainId: bigint;
  readonly baseFee: bigint;
  readonly ledger: Ledger;
  readonly accounts: ContractAccounts;
  /** Data about contracts that is not part of their storage. Executions do not see it. */
  readonly contracts: ContractState;
  readonly bytecode: Bytecode;
  readonly genesis: Genesis;
  /** The real chain that this chain forks. */
  readonly upstream: Upstream | undefined;
  /** Registers a token, unless it is already registered. */
  registerToken(token: { address: string; decimals: number; symbol: string }): void;
  /** Adds a deposit to the list of transfers and returns its hash. The caller must update the ledger. */
  recordDeposit(deposit: Movement & { block: Block }): string;
}

/** The code of contracts, and the slots that it writes. Slots and words are 64 hex digits. */
export interface Bytecode {
  /** Returns empty bytes if there is no contract at the address. */
  code(address: string): Uint8Array;
  setCode(address: string, code: Uint8Array): void;
  /** Returns zero for a slot that was never written. */
  word(address: string, slot: string): string;
  setWord(address: string, slot: string, word: string): void;
}

export const ZERO_WORD = '0'.repeat(64);

const MAX_CACHED = 1_000;
/** The first bytes of the code of a delegated account (EIP-7702). */
const DELEGATION = 'ef0100';

/** Returns the stored code and slots of a chain. Reads return the initial value if nothing is stored. */
export function storedBytecode(
  store: ChainStore,
  caip2: string,
  begun: Pick<Beginning, 'code' | 'word'>,
): Bytecode {
  // Equal code is always the same array, so that its hash is computed only once.
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
 * Returns the code at an address, as bytecode reads it: empty for a plain account, `ef0100` || contract for a
 * delegated account (EIP-7702).
 */
export function codeAt({ accounts, bytecode }: EvmState, address: string): Uint8Array {
  const delegate = accounts.delegate(address);
  return delegate === undefined ? bytecode.code(address) : hexToBytes(DELEGATION + delegate.slice(2));
}

/** Replaces the code at an address. Code of the form `ef0100` || contract delegates the account instead (EIP-7702). */
export function setCodeAt({ accounts, bytecode }: EvmState, address: string, code: Uint8Array): void {
  const text = bytesToHex(code);
  const isDelegation = text.startsWith(DELEGATION) && code.length === 23;
  accounts.setDelegate(address, isDelegation ? `0x${text.slice(DELEGATION.length)}` : undefined);
  bytecode.setCode(address, isDelegation ? new Uint8Array() : code);
}

/** Returns the hash of a string that identifies an object of the simulation. */
export function hashOf(text: string): string {
  return bytesTo0xHex(keccak_256(utf8ToBytes(text)));
}
