import { type ByteReader, createByteReader, InvalidBytesError } from '../../crypto/byte-reader.ts';
import { bytesTo0xHex, bytesToUtf8 } from '../../crypto/encoding.ts';
import { InvalidTransactionError } from '../signing-errors.ts';

/** A decoded transaction with the names of its actions. */
export interface NearTransaction {
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

// Actions by variant. Source: nearcore, core/primitives/src/action
const ACTIONS: readonly { readonly name: string; readonly skip: ReadAction }[] = [
  { name: 'CreateAccount', skip: () => undefined },
  { name: 'DeployContract', skip: (reader) => readByteVector(reader) },
  { name: 'FunctionCall', skip: skipFunctionCall },
  { name: 'Transfer', skip: (reader) => reader.u128() },
  { name: 'Stake', skip: skipStake },
  { name: 'AddKey', skip: skipAddKey },
  { name: 'DeleteKey', skip: (reader) => skipPublicKey(reader) },
  { name: 'DeleteAccount', skip: (reader) => readText(reader) },
];
const DELEGATE = 8;

/**
 * Decodes the Borsh bytes of a transaction. Refuses trailing bytes and unknown actions. Throws InvalidTransactionError.
 * Source: NEAR protocol specification, transactions; NEP-366 for the delegate action.
 */
export function decodeNearTransaction(bytes: Uint8Array): NearTransaction {
  const reader = createByteReader(bytes);
  try {
    // signer id || public key || nonce || receiver id || block hash || actions
    const signerId = readText(reader);
    if (reader.u8() !== 0) throw new InvalidBytesError('expected an ed25519 public key');
    const publicKey = reader.bytes(32);
    const nonce = reader.u64();
    const receiverId = readText(reader);
    const blockHash = reader.bytes(32);
    const actions = readMany(reader, () => {
      const start = reader.offset();
      const name = readAction(reader, true);
      return { name, encoded: bytesTo0xHex(reader.since(start)) };
    });
    reader.end();
    return { signerId, publicKey, nonce, receiverId, blockHash, actions };
  } catch (error) {
    if (error instanceof InvalidBytesError) throw new InvalidTransactionError('/transaction', error.message);
    throw error;
  }
}

// A delegate action contains actions, but no other delegate action.
function readAction(reader: ByteReader, mayDelegate: boolean): string {
  const variant = reader.u8();
  if (variant === DELEGATE && mayDelegate) {
    skipSignedDelegate(reader);
    return 'Delegate';
  }
  const action = ACTIONS[variant];
  if (action === undefined) throw new InvalidBytesError(`expected a known action, got variant ${variant}`);
  action.skip(reader);
  return action.name;
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

// key || nonce || permission: 0 function call { allowance?, receiver, methods }, 1 full access
function skipAddKey(reader: ByteReader): void {
  skipPublicKey(reader);
  reader.u64();
  const permission = reader.u8();
  if (permission > 1) throw new InvalidBytesError(`expected a known permission, got variant ${permission}`);
  if (permission === 1) return;
  const hasAllowance = reader.u8();
  if (hasAllowance > 1) throw new InvalidBytesError(`expected 0 or 1, got ${hasAllowance}`);
  if (hasAllowance === 1) reader.u128();
  readText(reader);
  readMany(reader, () => readText(reader));
}

// sender || receiver || actions || nonce || max block height || key || signature
function skipSignedDelegate(reader: ByteReader): void {
  readText(reader);
  readText(reader);
  readMany(reader, () => readAction(reader, false));
  reader.u64();
  reader.u64();
  skipPublicKey(reader);
  const curve = reader.u8();
  if (curve > 1) throw new InvalidBytesError(`expected a known signature curve, got ${curve}`);
  reader.bytes(curve === 0 ? 64 : 65);
}

// 0: ed25519, 32 bytes; 1: secp256k1, 64 bytes
function skipPublicKey(reader: ByteReader): void {
  const curve = reader.u8();
  if (curve > 1) throw new InvalidBytesError(`expected a known key curve, got ${curve}`);
  reader.bytes(curve === 0 ? 32 : 64);
}

function readMany<T>(reader: ByteReader, read: () => T): T[] {
  const count = reader.u32();
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
