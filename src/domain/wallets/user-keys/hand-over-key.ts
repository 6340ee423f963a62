import type { EncryptedAuthorizationKey } from '../../../generated/schemas.ts';
import type { NewUserKey } from './create-user-key.ts';

/** A user key in wire form: encrypted to the caller's key, or in plain when none is given. */
type HandedOverKey =
  | { readonly encrypted_authorization_key: EncryptedAuthorizationKey }
  | { readonly authorization_key: string };

/** Converts a private key to wire form. */
export function handOverKey({ privateKey }: NewUserKey): HandedOverKey {
  if (typeof privateKey === 'string') return { authorization_key: privateKey };
  return {
    encrypted_authorization_key: {
      encryption_type: 'HPKE',
      encapsulated_key: Buffer.from(privateKey.encapsulatedKey).toString('base64'),
      ciphertext: Buffer.from(privateKey.ciphertext).toString('base64'),
    },
  };
}
