import { sha256 } from '@noble/hashes/sha2.js';
import { type ByteReader, createByteReader, InvalidBytesError } from '../crypto/byte-reader.ts';
import { ed25519PublicKey, ed25519Sign } from '../crypto/ed25519.ts';
import {
  base64ToBytes,
  bytesTo0xHex,
  bytesToBase64,
  bytesToHex,
  bytesToUtf8,
  concatBytes,
  equalBytes,
} from '../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from './chain-signer.ts';
import { decodeField } from './fields.ts';
import { InvalidTransactionError } from './signing-errors.ts';

/** A decoded transaction. Actions are reduced to their names and their encoding. */
interface NearTransaction {
  /** Version 1 adds the nonces of gas keys and a nonce mode. */
  readonly version: 0 | 1;
  readonly signerId: string;
  /** 32 bytes of ed25519. */
  readonly publicKey: Uint8Array;
  readonly nonce: bigint;
  readonly receiverId: string;
  /** 32 bytes. */
  readonly blockHash: Uint8Array;
  /** `encoded` is the action's Borsh as 0x hex. */
  readonly actions: readonly { readonly name: string; readonly encoded: string }[];
}

type ReadAction = (reader: ByteReader) => void;

// The actions, by the number of their enum variant. Source: nearcore, core/primitives/src/action
const ACTIONS: readonly { readonly name: string; readonly skip: ReadAction }[] = [
  { name: 'CreateAccount', skip: () => undefined },
  { name: 'DeployContract', skip: (reader) => readByteVector(reader) },
  { name: 'FunctionCall', skip: skipFunctionCall },
  { name: 'Transfer', skip: (reader) => reader.u128() },
  { name: 'Stake', skip: skipStake },
  { name: 'AddKey', skip: skipAddKey },
  { name: 'DeleteKey', skip: (reader) => skipPublicKey(reader) },
  { name: 'DeleteAccount', skip: (reader) => readText(reader) },
  { name: 'Delegate', skip: skipSignedDelegate },
  { name: 'DeployGlobalContract', skip: skipDeployGlobalContract },
  { name: 'UseGlobalContract', skip: (reader) => skipGlobalContract(reader) },
  { name: 'DeterministicStateInit', skip: skipDeterministicStateInit },
  { name: 'TransferToGasKey', skip: skipGasKeyAmount },
  { name: 'WithdrawFromGasKey', skip: skipGasKeyAmount },
  { name: 'DelegateV2', skip: skipVersionedDelegate },
];
const DELEGATES: readonly string[] = ['Delegate', 'DelegateV2'];

export const nearActionNames: readonly string[] = ACTIONS.map(({ name }) => name);

/**
 * Decodes the Borsh bytes of a transaction. Rejects trailing bytes and unknown actions. Source: NEAR protocol
 * specification, transactions; NEP-366 and NEP-611 for delegate actions, NEP-591 for global contracts, NEP-616 for
 * deterministic accounts.
 *
 * @throws InvalidTransactionError
 */
export function decodeNearTransaction(bytes: Uint8Array): NearTransaction {
  const reader = createByteReader(bytes);
  try {
    // [01, version 1 only] || signer id || public key || nonce || receiver id || block hash || actions || [nonce mode,
    // version 1 only]
    const version = readVersion(reader, bytes);
    const signerId = readText(reader);
    if (reader.u8() !== 0) throw new InvalidBytesError('expected an ed25519 public key');
    const publicKey = reader.bytes(32);
    const nonce = version === 0 ? reader.u64() : readNonce(reader);
    const receiverId = readText(reader);
    const blockHash = reader.bytes(32);
    const actions = readActions(reader, () => {
      const start = reader.offset();
      const name = readAction(reader, true);
      return { name, encoded: bytesTo0xHex(reader.since(start)) };
    });
    if (version === 1) readVariant(reader, 'nonce mode', 1);
    reader.end();
    return { version, signerId, publicKey, nonce, receiverId, blockHash, actions };
  } catch (error) {
    if (error instanceof InvalidBytesError) throw new InvalidTransactionError('/transaction', error.message);
    throw error;
  }
}

// Version 0 has no tag. Its second byte belongs to the length of the signer's id and is 0.
function readVersion(reader: ByteReader, bytes: Uint8Array): 0 | 1 {
  if ((bytes[1] ?? 0) === 0) return 0;
  const version = reader.u8();
  if (version !== 1) throw new InvalidBytesError(`expected a transaction of version 0 or 1, got ${version}`);
  return 1;
}

// NonceVariant: 0 is a nonce, 1 is a nonce of a gas key with its index.
function readNonce(reader: ByteReader): bigint {
  const variant = readVariant(reader, 'nonce', 1);
  const nonce = reader.u64();
  if (variant === 1) reader.u16();
  return nonce;
}

// A delegate action contains actions, but no other delegate action.
function readAction(reader: ByteReader, mayDelegate: boolean): string {
  const variant = reader.u8();
  const action = ACTIONS[variant];
  if (action === undefined || (!mayDelegate && DELEGATES.includes(action.name))) {
    throw new InvalidBytesError(`expected a known action, got variant ${variant}`);
  }
  action.skip(reader);
  return action.name;
}

/** Reads an enum's variant number. `last` is the largest that the enum has. */
function readVariant(reader: ByteReader, what: string, last: number): number {
  const variant = reader.u8();
  if (variant > last) throw new InvalidBytesError(`expected a known ${what}, got variant ${variant}`);
  return variant;
}

// method || arguments || gas || deposit
function skipFunctionCall(reader: ByteReader): void {
  readText(reader);
  readByteVector(reader);
  reader.u64();
  reader.u128();
}

function skipStake(reader: ByteReader): void {
  reader.u128();
  skipPublicKey(reader);
}

// key || nonce || permission: 0 function call, 1 full access, 2 gas key and function call, 3 gas key with full access
function skipAddKey(reader: ByteReader): void {
  skipPublicKey(reader);
  reader.u64();
  const permission = readVariant(reader, 'permission', 3);
  if (permission >= 2) skipGasKeyInfo(reader);
  if (permission % 2 === 0) skipFunctionCallPermission(reader);
}

// balance || number of nonces
function skipGasKeyInfo(reader: ByteReader): void {
  reader.u128();
  reader.u16();
}

// allowance? || receiver || methods
function skipFunctionCallPermission(reader: ByteReader): void {
  if (readVariant(reader, 'option', 1) === 1) reader.u128();
  readText(reader);
  readMany(reader, () => readText(reader));
}

// code || mode: 0 deploys the code under its hash, 1 under the account
function skipDeployGlobalContract(reader: ByteReader): void {
  readByteVector(reader);
  readVariant(reader, 'deploy mode', 1);
}

// 0 hash of the code, 1 account id
function skipGlobalContract(reader: ByteReader): void {
  if (readVariant(reader, 'global contract', 1) === 0) reader.bytes(32);
  else readText(reader);
}

// V1 { contract, map of keys and values } || deposit
function skipDeterministicStateInit(reader: ByteReader): void {
  readVariant(reader, 'state init', 0);
  skipGlobalContract(reader);
  readMany(reader, () => {
    readByteVector(reader);
    readByteVector(reader);
  });
  reader.u128();
}

function skipGasKeyAmount(reader: ByteReader): void {
  skipPublicKey(reader);
  reader.u128();
}

// sender || receiver || actions || nonce || max block height || key || signature
function skipSignedDelegate(reader: ByteReader): void {
  skipDelegate(reader, () => reader.u64());
}

// V2 { a delegate action whose nonce can belong to a gas key } || signature
function skipVersionedDelegate(reader: ByteReader): void {
  readVariant(reader, 'delegate action', 0);
  skipDelegate(reader, () => readNonce(reader));
}

function skipDelegate(reader: ByteReader, skipNonce: () => void): void {
  readText(reader);
  readText(reader);
  readActions(reader, () => readAction(reader, false));
  skipNonce();
  reader.u64();
  skipPublicKey(reader);
  reader.bytes(SIGNATURE_BYTES[readVariant(reader, 'signature type', 2)] ?? 0);
}

// By key type: ed25519, secp256k1, ML-DSA-65. Source: nearcore, core/crypto/src/signature.rs
const KEY_BYTES = [32, 64, 1952];
const SIGNATURE_BYTES = [64, 65, 3309];

function skipPublicKey(reader: ByteReader): void {
  reader.bytes(KEY_BYTES[readVariant(reader, 'key type', 2)] ?? 0);
}

/** The maximum number of actions of a transaction. Source: nearcore, core/parameters, `max_actions_per_receipt`. */
const MAX_ACTIONS = 100;

function readActions<T>(reader: ByteReader, read: () => T): T[] {
  return readMany(reader, read, MAX_ACTIONS);
}

function readMany<T>(reader: ByteReader, read: () => T, most = Number.POSITIVE_INFINITY): T[] {
  const count = reader.u32();
  if (count > most) throw new InvalidBytesError(`expected at most ${most} items, got ${count}`);
  if (count > reader.remaining()) throw new InvalidBytesError(`expected ${count} items, got fewer`);
  const items: T[] = [];
  for (let index = 0; index < count; index += 1) items.push(read());
  return items;
}

function readByteVector(reader: ByteReader): Uint8Array {
  return reader.bytes(reader.u32());
}

function readText(reader: ByteReader): string {
  const text = bytesToUtf8(readByteVector(reader));
  if (text === undefined) throw new InvalidBytesError('expected UTF-8 text');
  return text;
}

/**
 * Signs for NEAR implicit accounts, whose id is the key as 64 lower-case hex digits. Source: NEP-071, implicit
 * accounts.
 */
export const nearSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToHex(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/**
 * Executes `near_signTransaction`: returns the signed transaction in base64, with the transaction bytes unchanged.
 * Its public key must be the wallet's; the signer may be a named account with that key. Source: NEAR protocol
 * specification, transactions.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export function signNearTransaction(secret: Uint8Array, params: { readonly transaction: string }): string {
  const bytes = decodeField('/transaction', () => base64ToBytes(params.transaction));
  const { publicKey } = decodeNearTransaction(bytes);
  if (!equalBytes(publicKey, ed25519PublicKey(secret))) {
    throw new InvalidTransactionError('/transaction', "expected the wallet's public key in the transaction");
  }
  // transaction || 00 || ed25519(sha256(transaction))
  return bytesToBase64(concatBytes(bytes, Uint8Array.of(0x00), ed25519Sign(sha256(bytes), secret)));
}
