import { HpkeError, sealHpke } from '../../../crypto/hpke.ts';
import { p256PublicKeyPoint } from '../../../crypto/p256.ts';
import { invalidField } from '../../../errors.ts';
import type { EncryptedAuthorizationKey } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { readPublicKey } from '../../base/public-keys/read-public-key.ts';

/** A user key in wire form: encrypted to the caller's key, or in plain when none is given. */
export type HandedOverKey =
  | { readonly encrypted_authorization_key: EncryptedAuthorizationKey }
  | { readonly authorization_key: string };

/**
 * Converts a private key (base64 PKCS #8) to wire form.
 *
 * @throws ApiError invalid_data when the recipient's key cannot be read.
 */
export async function handOverKey(
  context: Pick<OperationContext, 'entropy'>,
  privateKey: string,
  recipientPublicKey: string | undefined,
): Promise<HandedOverKey> {
  if (recipientPublicKey === undefined) return { authorization_key: privateKey };
  const pointer = '/recipient_public_key';
  const recipient = readPublicKey(recipientPublicKey, pointer);
  try {
    const { encapsulatedKey, ciphertext } = await sealHpke({
      recipientPublicKeyBytes: p256PublicKeyPoint(recipient),
      plaintext: new TextEncoder().encode(privateKey),
      ephemeralSeed: context.entropy.bytes(32),
    });
    return {
      encrypted_authorization_key: {
        encryption_type: 'HPKE',
        encapsulated_key: Buffer.from(encapsulatedKey).toString('base64'),
        ciphertext: Buffer.from(ciphertext).toString('base64'),
      },
    };
  } catch (error) {
    if (error instanceof HpkeError) throw invalidField(pointer, error.message);
    throw error;
  }
}
