import { createByteReader, InvalidBytesError } from '../../../../engine/crypto/byte-reader.ts';
import { ed25519Verify } from '../../../../engine/crypto/ed25519.ts';
import {
  base64ToBytes,
  bytesToBase58,
  bytesToBase64,
  bytesToHex,
} from '../../../../engine/crypto/encoding.ts';
import {
  ASSOCIATED_TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from '../../../../engine/signing/solana/associated-token.ts';
import {
  decodeSolanaTransaction,
  priorityFeeOf,
  type SolanaTransaction,
} from '../../../../engine/signing/solana/wire.ts';
import { type Sentinel, sentinelOf } from '../sentinels.ts';
import {
  NATIVE_LOADER,
  NO_DATA,
  type SolanaAccount,
  SYSTEM_PROGRAM,
  UPGRADEABLE_LOADER,
} from './accounts.ts';
import type { TransactionError } from './failures.ts';

/** A pending or included transaction, as stored. Addresses are base58. */
export interface SolanaPlan {
  readonly feePayer: string;
  readonly blockhash: string;
  readonly fee: bigint;
  /** The signed bytes in base64. Undefined if a version before 0.2 has stored the transaction. */
  readonly wire?: string;
  readonly sentinel: Sentinel | null;
}

/** A decoded transaction. */
export interface DecodedSolana {
  /** The first signature in base58. */
  readonly hash: string;
  readonly wire: Uint8Array;
  readonly transaction: SolanaTransaction;
  readonly keys: readonly string[];
  readonly budget: Budget;
  readonly plan: SolanaPlan;
}

/** An account of a transaction or an instruction. */
export interface AccountMeta {
  readonly address: string;
  readonly isSigner: boolean;
  readonly isWritable: boolean;
}

export interface Instruction {
  readonly program: string;
  readonly accounts: readonly AccountMeta[];
  readonly data: Uint8Array;
}

/** A transaction whose lookup tables are resolved. */
export interface ResolvedSolana {
  readonly accounts: readonly AccountMeta[];
  readonly instructions: readonly Instruction[];
  /** The accounts that come from lookup tables. */
  readonly loaded: { readonly writable: readonly string[]; readonly readonly: readonly string[] };
}

/** The limits that instructions of the compute budget program set. */
interface Budget {
  readonly units: bigint;
  readonly microLamportsPerUnit: bigint;
  /** The first fault of the instructions. Undefined if they are valid. */
  readonly error: TransactionError | undefined;
}

export const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111';
export const LOOKUP_TABLE_PROGRAM = 'AddressLookupTab1e1111111111111111111111111';
const VOTE_PROGRAM = 'Vote111111111111111111111111111111111111111';
/** The programs that verify signatures. Their data begins with the number of signatures. */
export const PRECOMPILES = [
  'Ed25519SigVerify111111111111111111111111111',
  'KeccakSecp256k11111111111111111111111111111',
  'Secp256r1SigVerify1111111111111111111111111',
];
/** Programs that the runtime itself implements, without bytecode. */
const NATIVE_PROGRAMS = [
  ...[SYSTEM_PROGRAM, COMPUTE_BUDGET_PROGRAM, UPGRADEABLE_LOADER, VOTE_PROGRAM],
  ...['BPFLoader1111111111111111111111111111111111', 'BPFLoader2111111111111111111111111111111111'],
  ...['LoaderV411111111111111111111111111111111111', 'ZkE1Gama1Proof11111111111111111111111111111'],
];
// Accounts that are never writable. Source: reserved_account_keys.rs.
const reserved = new Set([
  ...[...NATIVE_PROGRAMS, ...PRECOMPILES, NATIVE_LOADER, LOOKUP_TABLE_PROGRAM],
  ...['Config1111111111111111111111111111111111111', 'Feature111111111111111111111111111111111111'],
  ...['Stake11111111111111111111111111111111111111', 'StakeConfig11111111111111111111111111111111'],
  ...['ZkTokenProof1111111111111111111111111111111', 'Sysvar1111111111111111111111111111111111111'],
  ...['SysvarC1ock11111111111111111111111111111111', 'SysvarEpochSchedu1e111111111111111111111111'],
  ...['SysvarEpochRewards1111111111111111111111111', 'SysvarFees111111111111111111111111111111111'],
  ...['Sysvar1nstructions1111111111111111111111111', 'SysvarLastRestartS1ot1111111111111111111111'],
  ...['SysvarRecentB1ockHashes11111111111111111111', 'SysvarRent111111111111111111111111111111111'],
  ...['SysvarRewards111111111111111111111111111111', 'SysvarS1otHashes111111111111111111111111111'],
  ...['SysvarS1otHistory11111111111111111111111111', 'SysvarStakeHistory1111111111111111111111111'],
]);

const bytecodePrograms = [
  ...[TOKEN_PROGRAM, TOKEN_2022_PROGRAM, ASSOCIATED_TOKEN_PROGRAM],
  ...['MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr', 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo'],
];

/** Returns the account of a program that every chain has without a deployment, or undefined for other addresses. */
export function programOfAllChains(address: string): SolanaAccount | undefined {
  const shown = { lamports: 1n, executable: true, data: NO_DATA };
  if (NATIVE_PROGRAMS.includes(address) || PRECOMPILES.includes(address)) {
    return { ...shown, owner: NATIVE_LOADER };
  }
  return bytecodePrograms.includes(address)
    ? { ...shown, owner: 'BPFLoader2111111111111111111111111111111111' }
    : undefined;
}

const LAMPORTS_PER_SIGNATURE = 5_000n;
const UNITS_PER_INSTRUCTION = 200_000n;
/** The compute units that an instruction of a native program uses (SIMD-0170). */
const UNITS_PER_NATIVE_INSTRUCTION = 3_000n;
const MAX_UNITS = 1_400_000n;
const TABLE_META_BYTES = 56;

/**
 * Decodes a transaction's wire bytes, including its fee and its compute budget.
 *
 * @throws InvalidSolanaTransactionError
 */
export function decodeSolana(wire: Uint8Array): DecodedSolana {
  const transaction = decodeSolanaTransaction(wire);
  const keys = transaction.staticKeys.map(bytesToBase58);
  const budget = budgetOf(transaction, keys);
  return {
    hash: bytesToBase58(transaction.signatures[0]!),
    ...{ wire, transaction, keys, budget },
    plan: {
      feePayer: keys[0]!,
      blockhash: bytesToBase58(transaction.recentBlockhash),
      fee: feeOf(transaction, keys, budget),
      wire: bytesToBase64(wire),
      sentinel: sentinelOf(transaction.staticKeys.map(bytesToHex)) ?? null,
    },
  };
}

/** Decodes a stored transaction. Returns undefined if a version before 0.2 has stored it. */
export function decodePlan({ wire }: SolanaPlan): DecodedSolana | undefined {
  return wire === undefined ? undefined : decodeSolana(base64ToBytes(wire));
}

/** Returns whether the transaction has all signatures and all of them are valid. */
export function isSigned({ transaction: { signatures, staticKeys, message } }: DecodedSolana): boolean {
  return signatures.every((signature, index) => ed25519Verify(signature, message, staticKeys[index]!));
}

/**
 * Computes the fee: 5000 lamports per signature + units * unit price, rounded up. Source: Solana docs, transaction
 * fees.
 */
function feeOf(transaction: SolanaTransaction, keys: readonly string[], budget: Budget): bigint {
  const verified = transaction.instructions.reduce(
    (sum, { programIndex, data }) =>
      PRECOMPILES.includes(keys[programIndex] ?? '') ? sum + (data[0] ?? 0) : sum,
    transaction.requiredSignatures,
  );
  const byUnits = (budget.units * budget.microLamportsPerUnit + 999_999n) / 1_000_000n;
  return LAMPORTS_PER_SIGNATURE * BigInt(verified) + byUnits + priorityFeeOf(transaction);
}

// Reads the compute budget. Source: compute_budget_instruction_details.rs
function budgetOf({ instructions }: SolanaTransaction, keys: readonly string[]): Budget {
  const set = new Map<number, bigint>();
  let error: TransactionError | undefined;
  let byDefault = 0n;
  for (const [index, { programIndex, data }] of instructions.entries()) {
    const program = keys[programIndex] ?? '';
    const isNative = NATIVE_PROGRAMS.includes(program);
    if (!PRECOMPILES.includes(program)) {
      byDefault += isNative ? UNITS_PER_NATIVE_INSTRUCTION : UNITS_PER_INSTRUCTION;
    }
    if (program !== COMPUTE_BUDGET_PROGRAM) continue;
    const read = readBudget(data);
    if (read === undefined) error ??= { InstructionError: [index, 'InvalidInstructionData'] };
    else if (set.has(read.kind)) error ??= { DuplicateInstruction: index };
    else set.set(read.kind, read.value);
  }
  const heap = set.get(1);
  if (heap !== undefined && (heap < 32_768n || heap > 262_144n || heap % 1024n !== 0n)) {
    error ??= { InstructionError: [0, 'InvalidInstructionData'] };
  }
  if (set.get(4) === 0n) error ??= 'InvalidLoadedAccountsDataSizeLimit';
  const units = set.get(2) ?? byDefault;
  return { units: units > MAX_UNITS ? MAX_UNITS : units, microLamportsPerUnit: set.get(3) ?? 0n, error };
}

/**
 * Reads an instruction of the compute budget program. Kinds: 1 heap, 2 units, 3 price of a unit, 4 size of loaded
 * accounts. Returns undefined for invalid data.
 */
function readBudget(data: Uint8Array): { kind: number; value: bigint } | undefined {
  try {
    const reader = createByteReader(data);
    const kind = reader.u8();
    if (kind < 1 || kind > 4) return undefined;
    return { kind, value: kind === 3 ? reader.u64() : BigInt(reader.u32()) };
  } catch (error) {
    if (error instanceof InvalidBytesError) return undefined;
    throw error;
  }
}

/**
 * Resolves the accounts of a transaction, including those in lookup tables, or returns the error if this is impossible.
 */
export function resolveSolana(
  { transaction, keys }: DecodedSolana,
  account: (address: string) => SolanaAccount,
): ResolvedSolana | { readonly error: TransactionError } {
  const loaded = { writable: [] as string[], readonly: [] as string[] };
  for (const { table, writableIndexes, readonlyIndexes } of transaction.lookups) {
    const found = account(bytesToBase58(table));
    if (found.lamports === 0n) return { error: 'AddressLookupTableNotFound' };
    if (found.owner !== LOOKUP_TABLE_PROGRAM) return { error: 'InvalidAddressLookupTableOwner' };
    if (found.data.length < TABLE_META_BYTES) return { error: 'InvalidAddressLookupTableData' };
    const at = (index: number): string | undefined => {
      const start = TABLE_META_BYTES + 32 * index;
      return start + 32 > found.data.length
        ? undefined
        : bytesToBase58(found.data.subarray(start, start + 32));
    };
    for (const [list, indexes] of [
      [loaded.writable, writableIndexes],
      [loaded.readonly, readonlyIndexes],
    ] as const) {
      for (const index of indexes) {
        const address = at(index);
        if (address === undefined) return { error: 'InvalidAddressLookupTableIndex' };
        list.push(address);
      }
    }
  }
  const resolved = withLoaded({ transaction, keys }, loaded);
  const isUnique = new Set(resolved.accounts.map(({ address }) => address)).size === resolved.accounts.length;
  return isUnique ? resolved : { error: 'AccountLoadedTwice' };
}

/** Resolves a transaction with the given accounts of its lookup tables. */
export function withLoaded(
  { transaction, keys }: Pick<DecodedSolana, 'transaction' | 'keys'>,
  loaded: ResolvedSolana['loaded'],
): ResolvedSolana {
  const all = [...keys, ...loaded.writable, ...loaded.readonly];
  const programs = new Set(transaction.instructions.map(({ programIndex }) => all[programIndex]!));
  const keepsPrograms = all.includes(UPGRADEABLE_LOADER);
  const accounts = all.map((address, index) => ({
    address,
    isSigner: index < transaction.requiredSignatures,
    isWritable:
      (index < keys.length ? isWritable(transaction, index) : index < keys.length + loaded.writable.length) &&
      !reserved.has(address) &&
      (keepsPrograms || !programs.has(address)),
  }));
  const instructions = transaction.instructions.map(({ programIndex, accountIndexes, data }) => ({
    program: all[programIndex]!,
    accounts: [...accountIndexes].map((index) => accounts[index]!),
    data,
  }));
  return { accounts, instructions, loaded };
}

// Returns whether the account at an index is writable. The keys are in this order: writable signers, read-only signers,
// other writable keys, other read-only keys.
function isWritable(transaction: SolanaTransaction, index: number): boolean {
  const { requiredSignatures, readonlySigned, readonlyUnsigned, staticKeys } = transaction;
  if (index < requiredSignatures) return index < requiredSignatures - readonlySigned;
  return index < staticKeys.length - readonlyUnsigned;
}
