import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type AuthorizationKey, aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';

/** A P-256 key pair that signs requests, as base64 of PKCS #8 and of SubjectPublicKeyInfo. */
export type Signer = AuthorizationKey;

/**
 * The keys of the seeded users. Alice owns the wallet `ext_wal_alice`. The wallet `ext_wal_treasury` needs two of the
 * three signatures.
 */
export const alice: Signer = aliceKey;
export const bob: Signer = bobKey;
export const carol: Signer = carolKey;

/** Converts the key to a `node:crypto` key. */
export function keyOf({ privateKey }: Pick<Signer, 'privateKey'>): KeyObject {
  return createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
}
