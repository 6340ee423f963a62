import { sha3_256 } from '@noble/hashes/sha3.js';
import { type ByteReader, createByteReader, InvalidBytesError } from '../crypto/byte-reader.ts';
import { ed25519PublicKey, ed25519Sign } from '../crypto/ed25519.ts';
import { bytesTo0xHex, concatBytes, equalBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { readBcsBool, readBcsBytes, readBcsMany, readBcsText, readBcsVariant } from './bcs.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from './chain-signer.ts';
import { parseHexBytes } from './fields.ts';
import { InvalidTransactionError } from './signing-errors.ts';

/** A decoded `RawTransaction` of Aptos. */
interface AptosRawTransaction {
  /** 32 bytes. */
  readonly sender: Uint8Array;
  readonly sequenceNumber: bigint;
  /**
   * `address::module::function` of an entry function. Undefined for a script, an empty multisig payload and an
   * unknown form.
   */
  readonly entryFunction: string | undefined;
  /** BCS of the payload as 0x hex. */
  readonly payload: string;
  readonly maxGasAmount: bigint;
  readonly gasUnitPrice: bigint;
  /** Unix seconds. */
  readonly expirationTimestamp: bigint;
  readonly chainId: number;
}

// Move's limit on the nesting of types.
const MAX_TYPE_DEPTH = 8;
// The size of the fields after the payload: max gas || gas price || expiration || chain id.
const TAIL_BYTES = 8 + 8 + 8 + 1;

/**
 * Thrown when the bytes contain a variant that this decoder does not know. The chain adds variants from time to time.
 */
class UnknownVariantError extends Error {}

/**
 * Decodes the BCS bytes of a RawTransaction. Accepts only the canonical encoding: rejects trailing bytes and lengths
 * that use more bytes than necessary. Source: aptos-core, types/src/transaction.
 *
 * CHOICE: a payload with an unknown variant is signed as it is, because no policy reads payloads, and the fields
 * around it have fixed sizes. Examples are encrypted payloads, and type tags above 10, which aptos-core and its
 * TypeScript library number differently.
 *
 * @throws InvalidTransactionError
 */
export function decodeAptosRawTransaction(bytes: Uint8Array): AptosRawTransaction {
  const reader = createByteReader(bytes);
  try {
    // sender || sequence number || payload || max gas || gas price || expiration || chain id
    const head = { sender: reader.bytes(32), sequenceNumber: reader.u64() };
    const payloadStart = reader.offset();
    const transaction = {
      ...head,
      entryFunction: readKnownPayload(reader),
      payload: bytesTo0xHex(reader.since(payloadStart)),
      maxGasAmount: reader.u64(),
      gasUnitPrice: reader.u64(),
      expirationTimestamp: reader.u64(),
      chainId: reader.u8(),
    };
    reader.end();
    return transaction;
  } catch (error) {
    if (error instanceof InvalidBytesError) throw new InvalidTransactionError('/transaction', error.message);
    throw error;
  }
}

function readKnownPayload(reader: ByteReader): string | undefined {
  try {
    return readPayload(reader);
  } catch (error) {
    if (!(error instanceof UnknownVariantError)) throw error;
    if (reader.remaining() < TAIL_BYTES) throw new InvalidBytesError(error.message);
    reader.bytes(reader.remaining() - TAIL_BYTES);
    return undefined;
  }
}

// TransactionPayload: 0 Script, 1 ModuleBundle (removed), 2 EntryFunction, 3 Multisig, 4 Payload (orderless)
function readPayload(reader: ByteReader): string | undefined {
  const variant = readBcsVariant(reader);
  if (variant === 0) return skipScript(reader);
  if (variant === 1)
    throw new InvalidBytesError(
      'expected a payload that the chain takes, got ModuleBundle, which it has removed',
    );
  if (variant === 2) return readEntryFunction(reader);
  if (variant === 3) {
    reader.bytes(32);
    if (!readBcsBool(reader)) return undefined;
    if (readBcsVariant(reader) !== 0)
      throw new UnknownVariantError('expected an entry function in a multisig payload');
    return readEntryFunction(reader);
  }
  if (variant === 4) return readOrderlessPayload(reader);
  throw new UnknownVariantError(`expected a known payload, got variant ${variant}`);
}

// V1 { executable: Script | EntryFunction | Empty, extra config V1 { multisig address?, replay nonce? } }
function readOrderlessPayload(reader: ByteReader): string | undefined {
  if (readBcsVariant(reader) !== 0) throw new UnknownVariantError('expected version 1 of the payload');
  const executable = readBcsVariant(reader);
  if (executable > 2) throw new UnknownVariantError(`expected a known executable, got variant ${executable}`);
  let entryFunction: string | undefined;
  if (executable === 0) skipScript(reader);
  if (executable === 1) entryFunction = readEntryFunction(reader);
  if (readBcsVariant(reader) !== 0)
    throw new UnknownVariantError('expected version 1 of the extra configuration');
  if (readBcsBool(reader)) reader.bytes(32);
  if (readBcsBool(reader)) reader.u64();
  return entryFunction;
}

function readEntryFunction(reader: ByteReader): string {
  const address = bytesTo0xHex(reader.bytes(32));
  const name = `${address}::${readBcsText(reader)}::${readBcsText(reader)}`;
  readBcsMany(reader, () => skipTypeTag(reader, 0));
  readBcsMany(reader, () => readBcsBytes(reader));
  return name;
}

function skipScript(reader: ByteReader): undefined {
  readBcsBytes(reader);
  readBcsMany(reader, () => skipTypeTag(reader, 0));
  readBcsMany(reader, () => skipScriptArgument(reader));
  return undefined;
}

// Sizes of script arguments by variant; -1 is a byte vector, -2 a bool.
const SCRIPT_ARGUMENTS = [1, 8, 16, 32, -1, -2, 2, 4, 32, -1] as const;

function skipScriptArgument(reader: ByteReader): void {
  const size = SCRIPT_ARGUMENTS[readBcsVariant(reader)];
  if (size === undefined) throw new UnknownVariantError('expected a known script argument');
  if (size === -1) readBcsBytes(reader);
  else if (size === -2) readBcsBool(reader);
  else reader.bytes(size);
}

// TypeTag: variant 6 is a vector of a type and variant 7 a struct; the others have no content.
function skipTypeTag(reader: ByteReader, depth: number): void {
  if (depth > MAX_TYPE_DEPTH) throw new InvalidBytesError(`expected at most ${MAX_TYPE_DEPTH} nested types`);
  const variant = readBcsVariant(reader);
  if (variant > 10) throw new UnknownVariantError(`expected a known type, got variant ${variant}`);
  if (variant === 6) skipTypeTag(reader, depth + 1);
  if (variant === 7) {
    reader.bytes(32);
    readBcsText(reader);
    readBcsText(reader);
    readBcsMany(reader, () => skipTypeTag(reader, depth + 1));
  }
}

const SINGLE_ED25519 = Uint8Array.of(0x00);

/**
 * Signs for Aptos accounts. Movement uses the same address and transaction format. `raw_sign` takes the signing
 * message (prefix hash || BCS) instead of a digest. Source: AIP-40, single-signer authentication.
 */
export const aptosSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesTo0xHex(aptosAccount(key)), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/** Returns the account address of an ed25519 key that was never rotated: sha3-256(key || 0x00), 32 bytes. */
export function aptosAccount(publicKey: Uint8Array): Uint8Array {
  return sha3_256(concatBytes(publicKey, SINGLE_ED25519));
}

const SIGNING_PREFIX = sha3_256(utf8ToBytes('APTOS::RawTransaction'));

/**
 * Executes `aptos_signTransaction`: returns the SignedTransaction as 0x hex, with the raw transaction unchanged. The
 * sender must be the wallet. Source: aptos-core, TransactionAuthenticator::Ed25519.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export function signAptosTransaction(
  secret: Uint8Array,
  params: { readonly transaction: string },
): `0x${string}` {
  const raw = parseHexBytes(params.transaction, '/transaction');
  const { sender } = decodeAptosRawTransaction(raw);
  const publicKey = ed25519PublicKey(secret);
  const account = aptosAccount(publicKey);
  if (!equalBytes(sender, account)) {
    throw new InvalidTransactionError(
      '/transaction',
      `expected the wallet \`${bytesTo0xHex(account)}\` as sender, got \`${bytesTo0xHex(sender)}\``,
    );
  }
  // sign(sha3-256("APTOS::RawTransaction") || raw); raw || 00 || 20 key || 40 signature
  const signature = ed25519Sign(concatBytes(SIGNING_PREFIX, raw), secret);
  return bytesTo0xHex(concatBytes(raw, Uint8Array.of(0x00, 0x20), publicKey, Uint8Array.of(0x40), signature));
}
