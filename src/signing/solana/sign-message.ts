import { ed25519Sign } from '../../crypto/ed25519.ts';
import { base64ToBytes, bytesToBase64 } from '../../crypto/encoding.ts';
import { decodeField } from '../fields.ts';

/** `signMessage`: base64 of the 64-byte ed25519 signature over the bytes of the base64 message. Throws InvalidFieldError. */
export function signSolanaMessage(
  secret: Uint8Array,
  params: { readonly message: string; readonly encoding: 'base64' },
): string {
  const message = decodeField('/message', () => base64ToBytes(params.message));
  return bytesToBase64(ed25519Sign(message, secret));
}
