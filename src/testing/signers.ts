import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type AuthorizationKey, aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';

/** A P-256 key pair that signs requests: base64 of PKCS #8 and of SubjectPublicKeyInfo. */
export type Signer = AuthorizationKey;

/** The seeded users' keys. Alice owns the wallet `ext_wal_alice`; two of the three sign for `ext_wal_treasury`. */
export const alice: Signer = aliceKey;
export const bob: Signer = bobKey;
export const carol: Signer = carolKey;

/** The key for `node:crypto`. */
export function keyOf({ privateKey }: Pick<Signer, 'privateKey'>): KeyObject {
  return createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
}
