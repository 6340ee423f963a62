import { sha256 } from '@noble/hashes/sha2.js';
import { ed25519PublicKey, ed25519Sign } from '../../crypto/ed25519.ts';
import { base64ToBytes, bytesToBase64, bytesToHex, concatBytes, equalBytes } from '../../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from '../chain-signer.ts';
import { decodeField } from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { decodeNearTransaction } from './transaction.ts';

/** NEAR implicit accounts: the key as 64 lower-case hex digits. Source: NEP-071, implicit accounts. */
export const nearSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToHex(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/**
 * `near_signTransaction`: returns the signed transaction in base64, with the transaction bytes unchanged. Its public
 * key must be the wallet's; the signer may be a named account with that key. Source: NEAR protocol specification,
 * transactions.
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
