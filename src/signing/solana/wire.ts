import { type ByteReader, createByteReader, InvalidBytesError } from '../../crypto/byte-reader.ts';
import { bytesToHex } from '../../crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';

/*
 * Decodes the wire format without a client library: a signer must refuse non-canonical encodings (overlong lengths,
 * trailing bytes) and must sign the message bytes unchanged.
 */

/** A compiled instruction. Indexes refer to the static keys followed by the accounts from lookup tables. */
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
  readonly version: 'legacy' | 0;
  /** 64 bytes each, in the order of the required signers; all zeros where a signature is missing. */
  readonly signatures: readonly Uint8Array[];
  /** The bytes that are signed. */
  readonly message: Uint8Array;
  readonly requiredSignatures: number;
  /** The last N of the signers are read-only. */
  readonly readonlySigned: number;
  /** The last N of the other static keys are read-only. */
  readonly readonlyUnsigned: number;
  /** 32 bytes each; the first `requiredSignatures` must sign, the first one pays the fee. */
  readonly staticKeys: readonly Uint8Array[];
  readonly recentBlockhash: Uint8Array;
  readonly instructions: readonly CompiledInstruction[];
  readonly lookups: readonly AddressTableLookup[];
}

const MAX_ACCOUNTS = 256;
// CHOICE: the limit is 1232 bytes today; SIMD-0296 raises it to 4096.
const MAX_WIRE_BYTES = 4096;

/**
 * Decodes a legacy or version 0 transaction. Accepts the canonical encoding only.
 * Throws InvalidSolanaTransactionError. Source: Solana docs, transaction and message structure; SIMD-0001 lookups.
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
  if (wire.length > MAX_WIRE_BYTES) {
    throw new InvalidBytesError(`expected at most ${MAX_WIRE_BYTES} bytes, got ${wire.length}`);
  }
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
  } as const;
  assertHeader(transaction);
  assertIndexes(transaction);
  return transaction;
}

// With the top bit set, the first message byte is the version; otherwise it belongs to the legacy header.
function readVersion(reader: ByteReader, message: Uint8Array): 'legacy' | 0 {
  if (((message[0] ?? 0) & 0x80) === 0) return 'legacy';
  const version = reader.u8() & 0x7f;
  if (version !== 0)
    throw new InvalidBytesError(`expected a legacy message or version 0, got version ${version}`);
  return 0;
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
  const count = Number(reader.uleb128(16));
  const items: T[] = [];
  for (let index = 0; index < count; index += 1) items.push(read());
  return items;
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

// As the runtime does, refuses a fee payer or a looked-up account as program, indexes out of range, and empty lookups.
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
