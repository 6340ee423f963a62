import { InvalidPublicKeyError, parseP256PublicKey } from '../../../engine/crypto/p256.ts';
import { invalidField } from '../../../errors.ts';

/**
 * One public key of a body in canonical form.
 *
 * @throws ApiError invalid_data
 */
export function readPublicKey(key: string, pointer: string): string {
  try {
    return parseP256PublicKey(key);
  } catch (error) {
    if (error instanceof InvalidPublicKeyError) throw invalidField(pointer, error.message);
    throw error;
  }
}
