import { createPrivateKey } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import canonicalize from 'canonicalize';

/** Signs payloads as one owner. A key in a KMS is a signer, too: it returns ECDSA on P-256 with SHA-256, DER in base64. */
export interface Signer {
  sign(payload: Uint8Array): string | Promise<string>;
}

/** @param privateKey a key on the curve P-256: PEM, or base64 of PKCS #8. */
export function keySigner(privateKey: string): Signer {
  const isPem = privateKey.includes('-----BEGIN');
  const key = isPem
    ? createPrivateKey(privateKey)
    : createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new TypeError('expected a private key on the curve P-256');
  const secret = Buffer.from(key.export({ format: 'jwk' }).d as string, 'base64url');
  return {
    sign: (payload) =>
      Buffer.from(p256.sign(payload, secret, { lowS: false, format: 'der' })).toString('base64'),
  };
}

export interface SignedRequest {
  readonly method: string;
  readonly url: string;
  readonly body?: unknown;
  /** `service-app-id`, and the idempotency key and the deadline if they are sent. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the text that owners sign, by RFC 8785. The `request_details` of an intent are such a request. */
export function canonicalPayload({ method, url, body, headers }: SignedRequest): string {
  return canonicalize({ version: 1, method, url, body, headers }) as string;
}
