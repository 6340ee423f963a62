import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Evidence } from '../../../src/engine/authorization/signed-evidence.ts';

/** A person with a P-256 key who signs requests like a client. */
export interface Owner {
  /** The public key as base64 SubjectPublicKeyInfo. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

export function newOwner(): Owner {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64') };
}

/** Makes the owner of a key in base64 PKCS #8. */
export function ownerOf(text: string): Owner {
  const privateKey = createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: publicKey.toString('base64') };
}

export interface AskedRequest {
  readonly path: string;
  readonly body: object;
  readonly method?: string;
  readonly appId?: string;
  /** The expiry in Unix ms. Undefined for a request without expiry. */
  readonly expiryMs?: number;
  readonly idempotencyKey?: string;
}

/** The canonical payload of a request (RFC 8785). */
export function payloadOf(request: AskedRequest): string {
  const { path, body, method = 'POST', appId = 'acme', expiryMs, idempotencyKey } = request;
  const expiry = expiryMs === undefined ? {} : { 'service-request-expiry': String(expiryMs) };
  const key = idempotencyKey === undefined ? {} : { 'service-idempotency-key': idempotencyKey };
  const headers = { 'service-app-id': appId, ...expiry, ...key };
  return canonicalize({ version: 1, method, url: `https://api.acme.example${path}`, body, headers })!;
}

export function signPayload({ privateKey }: Owner, payload: string): string {
  return sign('sha256', Buffer.from(payload), privateKey).toString('base64');
}

/** The evidence of a request that these owners have signed. */
export function signedBy(owners: readonly Owner[], request: AskedRequest): Evidence {
  const payload = payloadOf(request);
  return { requests: [{ payload, signatures: owners.map((owner) => signPayload(owner, payload)) }] };
}
