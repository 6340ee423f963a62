import { type ByteReader, createByteReader, InvalidBytesError } from '../../crypto/byte-reader.ts';
import {
  base58ToBytes,
  bytesToBase58,
  bytesToHex,
  concatBytes,
  littleEndian,
} from '../../crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';

/*
 * Decodes the wire format without a client library, because a signer must reject non-canonical encodings (overlong
 * lengths, trailing bytes) and must sign the message bytes unchanged.
 */

/** A compiled instruction. Its indexes refer to the static keys followed by the accounts from lookup tables. */
export interface CompiledInstruction {
  readonly programIndex: number;
  readonly accountIndexes: Uint8Array;
  readonly data: Uint8Array;
}

interface AddressTableLookup {
  readonly table: Uint8Array;
  readonly writableIndexes: Uint8Array;
  readonly readonlyIndexes: Uint8Array;
}

/** A decoded transaction. All bytes are views into the wire bytes. */
export interface SolanaTransaction {
  readonly version: 'legacy' | 0 | 1;
  /** 64 bytes each, in the order of the required signers. A missing signature is all zeros. */
  readonly signatures: readonly Uint8Array[];
  /** The bytes that are signed. */
  readonly message: Uint8Array;
  readonly requiredSignatures: number;
  /** The number of read-only accounts at the end of the signers. */
  readonly readonlySigned: number;
  /** The number of read-only accounts at the end of the other static keys. */
  readonly readonlyUnsigned: number;
  /** 32 bytes each. The first `requiredSignatures` must sign, and the first one pays the fee. */
  readonly staticKeys: readonly Uint8Array[];
  readonly recentBlockhash: Uint8Array;
  readonly instructions: readonly CompiledInstruction[];
  readonly lookups: readonly AddressTableLookup[];
  /** Only in version 1: the bit mask of requested fees and limits, and their values. Empty in other versions. */
  readonly config: Uint8Array;
}

const VERSION_BIT = 0x80;
const VERSION_1 = VERSION_BIT | 1;
const MAX_ACCOUNTS = 256;
// The size of a packet. Only version 1 may be larger (SIMD-0385).
const MAX_WIRE_BYTES = 1_232;
const MAX_VERSION_1 = { wireBytes: 4_096, signatures: 12, accounts: 64, instructions: 64 };

/**
 * Decodes a legacy, version 0 or version 1 transaction. Accepts only the canonical encoding. Source: Solana docs,
 * transaction and message structure; SIMD-0001 lookups; SIMD-0385 version 1.
 *
 * @throws InvalidSolanaTransactionError
 */
export function decodeSolanaTransaction(wire: Uint8Array): SolanaTransaction {
  try {
    return readTransaction(wire);
  } catch (error) {
    if (error instanceof InvalidBytesError)
      throw new InvalidSolanaTransactionError('/transaction', error.message);
    throw error;
  }
}

function readTransaction(wire: Uint8Array): SolanaTransaction {
  // In versions before 1, the first byte is the number of signatures. It never equals VERSION_1, because 128 or more
  // signatures do not fit into a packet.
  const first = wire[0] ?? 0;
  if (first === VERSION_1) return readVersion1(wire);
  if (first > VERSION_1) throw unknownVersion(first & 0x7f);
  requireSize(wire, MAX_WIRE_BYTES);
  const reader = createByteReader(wire);
  // compact-u16 count || 64-byte signatures || message
  const signatures = readMany(reader, () => reader.bytes(64));
  const message = wire.subarray(reader.offset());
  const version = readVersion(reader, message);
  const requiredSignatures = reader.u8();
  const readonlySigned = reader.u8();
  const readonlyUnsigned = reader.u8();
  const staticKeys = readMany(reader, () => reader.bytes(32));
  const recentBlockhash = reader.bytes(32);
  const instructions = readMany(reader, () => readInstruction(reader));
  const lookups = version === 0 ? readMany(reader, () => readLookup(reader)) : [];
  reader.end();
  const transaction = {
    version,
    signatures,
    message,
    requiredSignatures,
    readonlySigned,
    readonlyUnsigned,
    staticKeys,
    recentBlockhash,
    instructions,
    lookups,
    config: new Uint8Array(),
  } as const;
  assertHeader(transaction);
  assertIndexes(transaction);
  return transaction;
}

function requireSize(wire: Uint8Array, limit: number): void {
  if (wire.length > limit) throw new InvalidBytesError(`expected at most ${limit} bytes, got ${wire.length}`);
}

function unknownVersion(version: number): InvalidBytesError {
  return new InvalidBytesError(`expected a legacy transaction, or version 0 or 1, got version ${version}`);
}

// If its top bit is set, the first byte of the message is the version. If not, it is part of the legacy header.
function readVersion(reader: ByteReader, message: Uint8Array): 'legacy' | 0 {
  if (((message[0] ?? 0) & VERSION_BIT) === 0) return 'legacy';
  const version = reader.u8() & 0x7f;
  if (version !== 0) throw unknownVersion(version);
  return 0;
}

// 81 || header || config mask || blockhash || instruction count || account count || accounts || config values ||
// instruction headers || instruction payloads || signatures
function readVersion1(wire: Uint8Array): SolanaTransaction {
  requireSize(wire, MAX_VERSION_1.wireBytes);
  const reader = createByteReader(wire);
  reader.u8();
  const header = {
    requiredSignatures: reader.u8(),
    readonlySigned: reader.u8(),
    readonlyUnsigned: reader.u8(),
  };
  const mask = reader.bytes(4);
  const recentBlockhash = reader.bytes(32);
  const counts = { instructions: reader.u8(), accounts: reader.u8() };
  requireAtMost('signatures', header.requiredSignatures, MAX_VERSION_1.signatures);
  requireAtMost('instructions', counts.instructions, MAX_VERSION_1.instructions);
  requireAtMost('accounts', counts.accounts, MAX_VERSION_1.accounts);
  const staticKeys = times(counts.accounts, () => reader.bytes(32));
  const config = concatBytes(mask, readConfigValues(reader, createByteReader(mask).u32()));
  const instructions = times(counts.instructions, () => ({
    programIndex: reader.u8(),
    accountCount: reader.u8(),
    dataLength: reader.u16(),
  })).map(({ programIndex, accountCount, dataLength }) => ({
    programIndex,
    accountIndexes: reader.bytes(accountCount),
    data: reader.bytes(dataLength),
  }));
  const message = wire.subarray(0, reader.offset());
  const signatures = times(header.requiredSignatures, () => reader.bytes(64));
  reader.end();
  const decoded = { ...header, recentBlockhash, staticKeys, config, instructions, message, signatures };
  const transaction = { version: 1, lookups: [], ...decoded } as const;
  assertHeader(transaction);
  assertIndexes(transaction);
  return transaction;
}

// Bits of the mask: 0 and 1 the priority fee (u64), 2 the compute units, 3 the size of loaded accounts, 4 the heap.
const PRIORITY_FEE = 0b00011;
const HEAP = 0b10000;
const KNOWN_CONFIG = 0b11111;

function readConfigValues(reader: ByteReader, mask: number): Uint8Array {
  if (mask > KNOWN_CONFIG) throw new InvalidBytesError(`expected a known configuration, got mask ${mask}`);
  const fee = mask & PRIORITY_FEE;
  if (fee !== 0 && fee !== PRIORITY_FEE)
    throw new InvalidBytesError('expected both bits of the priority fee');
  const start = reader.offset();
  for (let bit = 1; bit < HEAP; bit <<= 1) if ((mask & bit) !== 0) reader.u32();
  if ((mask & HEAP) !== 0) {
    const heap = reader.u32();
    const isHeap = heap % 1024 === 0 && heap >= 32 * 1024 && heap <= 256 * 1024;
    if (!isHeap) throw new InvalidBytesError(`expected a heap of 32 to 256 KiB, got ${heap} bytes`);
  }
  return reader.since(start);
}

/**
 * Returns the priority fee of a version 1 transaction, in lamports. Returns 0 for other versions, which set it by an
 * instruction.
 */
export function priorityFeeOf({ config }: Pick<SolanaTransaction, 'config'>): bigint {
  if (config.length === 0) return 0n;
  const reader = createByteReader(config);
  return (reader.u32() & PRIORITY_FEE) === 0 ? 0n : reader.u64();
}

function requireAtMost(what: string, count: number, limit: number): void {
  if (count > limit) throw new InvalidBytesError(`expected at most ${limit} ${what}, got ${count}`);
}

function times<T>(count: number, read: () => T): T[] {
  return Array.from({ length: count }, read);
}

function readInstruction(reader: ByteReader): CompiledInstruction {
  return { programIndex: reader.u8(), accountIndexes: readBytes(reader), data: readBytes(reader) };
}

function readLookup(reader: ByteReader): AddressTableLookup {
  return { table: reader.bytes(32), writableIndexes: readBytes(reader), readonlyIndexes: readBytes(reader) };
}

function readBytes(reader: ByteReader): Uint8Array {
  return reader.bytes(Number(reader.uleb128(16)));
}

function readMany<T>(reader: ByteReader, read: () => T): T[] {
  return times(Number(reader.uleb128(16)), read);
}

function assertHeader({
  requiredSignatures,
  readonlySigned,
  readonlyUnsigned,
  signatures,
  staticKeys,
}: SolanaTransaction): void {
  const isConsistent =
    requiredSignatures >= 1 &&
    readonlySigned < requiredSignatures &&
    requiredSignatures + readonlyUnsigned <= staticKeys.length;
  if (!isConsistent) throw new InvalidBytesError('expected a header that matches the account keys');
  if (signatures.length !== requiredSignatures) {
    throw new InvalidBytesError(`expected ${requiredSignatures} signature slots, got ${signatures.length}`);
  }
  if (new Set(staticKeys.map(bytesToHex)).size !== staticKeys.length) {
    throw new InvalidBytesError('expected each account key once');
  }
}

// Checks what the runtime checks: a fee payer or a looked-up account must not be a program, indexes must be in range,
// and lookups must not be empty.
function assertIndexes({ staticKeys, instructions, lookups }: SolanaTransaction): void {
  const total = lookups.reduce((count, lookup) => {
    const loaded = lookup.writableIndexes.length + lookup.readonlyIndexes.length;
    if (loaded === 0) throw new InvalidBytesError('expected every table lookup to load an account');
    return count + loaded;
  }, staticKeys.length);
  if (total > MAX_ACCOUNTS)
    throw new InvalidBytesError(`expected at most ${MAX_ACCOUNTS} accounts, got ${total}`);
  for (const { programIndex, accountIndexes } of instructions) {
    if (programIndex === 0 || programIndex >= staticKeys.length) {
      throw new InvalidBytesError('expected programs among the static keys, not the fee payer');
    }
    if (accountIndexes.some((index) => index >= total)) {
      throw new InvalidBytesError(`expected account indexes below ${total}`);
    }
  }
}

/**
 * Inserts a fee payer as the first account of a transaction and shifts all account indexes by one. Clears the
 * signatures, because the message changes.
 *
 * @param feePayer base58 of 32 bytes.
 * @throws InvalidSolanaTransactionError if the fee payer is already an account of the transaction.
 */
export function withFeePayer(wire: Uint8Array, feePayer: string): Uint8Array {
  const transaction = decodeSolanaTransaction(wire);
  if (transaction.staticKeys.some((key) => bytesToBase58(key) === feePayer)) {
    throw new InvalidSolanaTransactionError(
      '/transaction',
      `expected a transaction without the account \`${feePayer}\``,
    );
  }
  const signatures = new Uint8Array(64 * (transaction.requiredSignatures + 1));
  const payer = base58ToBytes(feePayer);
  if (transaction.version === 1) return concatBytes(messageOfVersion1(transaction, payer), signatures);
  return concatBytes(compact(transaction.requiredSignatures + 1), signatures, messageOf(transaction, payer));
}

/**
 * Fills a signature slot in a copy of the wire bytes.
 *
 * @param slot the signer's index among the required signers.
 */
export function withSignature(wire: Uint8Array, slot: number, signature: Uint8Array): Uint8Array {
  const signed = wire.slice();
  // The decoded fields share memory with the wire bytes, so this also changes the transaction.
  decodeSolanaTransaction(signed).signatures[slot]?.set(signature);
  return signed;
}

// [0x80, version 0 only] || header || keys || blockhash || instructions || [lookups, version 0 only]
function messageOf(transaction: SolanaTransaction, feePayer: Uint8Array): Uint8Array {
  const { version, requiredSignatures, readonlySigned, readonlyUnsigned, staticKeys } = transaction;
  const { recentBlockhash, instructions, lookups } = transaction;
  return concatBytes(
    version === 0 ? Uint8Array.of(0x80) : new Uint8Array(),
    Uint8Array.of(requiredSignatures + 1, readonlySigned, readonlyUnsigned),
    compact(staticKeys.length + 1),
    feePayer,
    ...staticKeys,
    recentBlockhash,
    compact(instructions.length),
    ...instructions.map(shifted),
    ...(version === 0 ? [compact(lookups.length)] : []),
    ...lookups.map(({ table, writableIndexes, readonlyIndexes }) =>
      concatBytes(table, sized(writableIndexes), sized(readonlyIndexes)),
    ),
  );
}

// Encodes the message of a version 1 transaction. Source: SIMD-0385.
function messageOfVersion1(transaction: SolanaTransaction, feePayer: Uint8Array): Uint8Array {
  const { requiredSignatures, readonlySigned, readonlyUnsigned, staticKeys } = transaction;
  const { recentBlockhash, instructions, config } = transaction;
  return concatBytes(
    Uint8Array.of(0x81, requiredSignatures + 1, readonlySigned, readonlyUnsigned),
    config.subarray(0, 4),
    recentBlockhash,
    Uint8Array.of(instructions.length, staticKeys.length + 1),
    feePayer,
    ...staticKeys,
    config.subarray(4),
    ...instructions.map(({ programIndex, accountIndexes, data }) =>
      concatBytes(
        Uint8Array.of(programIndex + 1, accountIndexes.length),
        littleEndian(BigInt(data.length), 2),
      ),
    ),
    ...instructions.flatMap(({ accountIndexes, data }) => [accountIndexes.map((index) => index + 1), data]),
  );
}

function shifted({ programIndex, accountIndexes, data }: CompiledInstruction): Uint8Array {
  if (accountIndexes.includes(255)) {
    throw new InvalidSolanaTransactionError('/transaction', 'expected at most 255 accounts, got 256');
  }
  const accounts = accountIndexes.map((index) => index + 1);
  return concatBytes(Uint8Array.of(programIndex + 1), sized(accounts), sized(data));
}

function sized(bytes: Uint8Array): Uint8Array {
  return concatBytes(compact(bytes.length), bytes);
}

// Encodes a compact-u16: seven bits per byte, least significant first.
function compact(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Uint8Array.of(...bytes, rest);
}
