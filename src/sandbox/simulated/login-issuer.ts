import { createPrivateKey, createPublicKey } from 'node:crypto';
import { exportJWK, type JWK, SignJWT } from 'jose';
import { p256KeyPairFromSeed } from '../../engine/crypto/p256.ts';

/** The claim `iss` of its tokens. */
const ISSUER = 'https://login.acme.example';

const LIFETIME_SECONDS = 3600;

/** Simulates the login server of an app with custom authentication: it signs tokens that name a `custom_user_id`. */
export interface LoginIssuer {
  readonly issuer: string;
  /** The public key, as PEM of its SubjectPublicKeyInfo. */
  readonly verificationKey: string;
  /** Returns the public key as a JWK. */
  jwk(): Promise<JWK>;
  /** Signs a token that names a `custom_user_id` and is valid for an hour from `nowMs`. */
  issue(
    customUserId: string,
    options: { readonly claim: string; readonly audience: string | undefined; readonly nowMs: number },
  ): Promise<string>;
}

/** Creates the login. Equal seeds yield equal keys. */
export function createLoginIssuer(seed: Uint8Array): LoginIssuer {
  const { privateKeyPkcs8, publicKey } = p256KeyPairFromSeed(seed);
  const signingKey = createPrivateKey({
    ...{ key: Buffer.from(privateKeyPkcs8, 'base64'), format: 'der', type: 'pkcs8' },
  });
  const verifying = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
  return {
    issuer: ISSUER,
    verificationKey: verifying.export({ format: 'pem', type: 'spki' }).toString(),
    jwk: async () => ({ ...(await exportJWK(verifying)), use: 'sig', alg: 'ES256' }),
    issue(customUserId, { claim, audience, nowMs }) {
      const issuedAt = Math.floor(nowMs / 1000);
      const claims = { [claim]: customUserId, iss: ISSUER, iat: issuedAt, exp: issuedAt + LIFETIME_SECONDS };
      return new SignJWT(audience === undefined ? claims : { ...claims, aud: audience })
        .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
        .sign(signingKey);
    },
  };
}
