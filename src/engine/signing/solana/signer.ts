import { ed25519PublicKey, ed25519Sign } from '../../crypto/ed25519.ts';
import { base64ToBytes, bytesToBase58, bytesToBase64, equalBytes } from '../../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from '../chain-signer.ts';
import { decodeField } from '../fields.ts';
import { InvalidSolanaTransactionError } from '../signing-errors.ts';
import { decodeSolanaTransaction } from './wire.ts';

/** Signs for Solana accounts, whose address is the ed25519 public key in base58. */
export const solanaSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToBase58(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/**
 * Executes `signMessage`: returns base64 of the 64-byte ed25519 signature over the bytes of the base64 message.
 *
 * @throws InvalidFieldError
 */
export function signSolanaMessage(
  secret: Uint8Array,
  params: { readonly message: string; readonly encoding: 'base64' },
): string {
  const message = decodeField('/message', () => base64ToBytes(params.message));
  return bytesToBase64(ed25519Sign(message, secret));
}

export interface SolanaTransactionParams {
  /** The wire bytes of a legacy, version 0 or version 1 transaction, in base64. */
  readonly transaction: string;
  readonly encoding: 'base64';
}

/**
 * Executes `signTransaction`: fills the wallet's signature slot and leaves the message and the other signatures
 * unchanged. Returns the wire bytes in base64. They are unchanged if the wallet is not a required signer.
 *
 * @throws InvalidSolanaTransactionError
 */
export function signSolanaTransaction(secret: Uint8Array, params: SolanaTransactionParams): string {
  const wire = parseSolanaWire(params.transaction);
  const transaction = decodeSolanaTransaction(wire);
  const publicKey = ed25519PublicKey(secret);
  const slot = transaction.staticKeys.findIndex((key) => equalBytes(key, publicKey));
  if (slot === -1 || slot >= transaction.requiredSignatures) return params.transaction;
  // The decoded fields share memory with the wire bytes, so this also changes the transaction.
  transaction.signatures[slot]?.set(ed25519Sign(transaction.message, secret));
  return bytesToBase64(wire);
}

/**
 * Converts base64 to wire bytes.
 *
 * @throws InvalidSolanaTransactionError
 */
export function parseSolanaWire(base64: string): Uint8Array {
  try {
    return base64ToBytes(base64);
  } catch {
    throw new InvalidSolanaTransactionError('/transaction', 'expected padded standard base64');
  }
}
