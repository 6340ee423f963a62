import { ed25519PublicKey, ed25519Sign } from '../../crypto/ed25519.ts';
import { base64ToBytes, bytesToBase64, equalBytes } from '../../crypto/encoding.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';
import { decodeSolanaTransaction } from './wire.ts';

export interface SolanaTransactionParams {
  /** Base64 of the wire bytes, legacy or version 0 or 1. */
  readonly transaction: string;
  readonly encoding: 'base64';
}

/**
 * `signTransaction`: fills the wallet's signature slot and leaves the message and the other signatures unchanged.
 * Returns the wire bytes in base64, unchanged when the wallet is not a required signer.
 * Throws InvalidSolanaTransactionError.
 */
export function signSolanaTransaction(secret: Uint8Array, params: SolanaTransactionParams): string {
  const wire = parseSolanaWire(params.transaction);
  const transaction = decodeSolanaTransaction(wire);
  const publicKey = ed25519PublicKey(secret);
  const slot = transaction.staticKeys.findIndex((key) => equalBytes(key, publicKey));
  if (slot === -1 || slot >= transaction.requiredSignatures) return params.transaction;
  // The decoded fields are views into the wire bytes, so this changes the transaction.
  transaction.signatures[slot]?.set(ed25519Sign(transaction.message, secret));
  return bytesToBase64(wire);
}

/** Base64 to wire bytes. Throws InvalidSolanaTransactionError. */
export function parseSolanaWire(base64: string): Uint8Array {
  try {
    return base64ToBytes(base64);
  } catch {
    throw new InvalidSolanaTransactionError('/transaction', 'expected padded standard base64');
  }
}
