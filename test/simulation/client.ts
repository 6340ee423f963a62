import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import canonicalize from 'canonicalize';
import { aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import { type OperationId, type Operations, operations } from '../../src/generated/operations.ts';
import type { SentRequest } from './in-process-http.ts';
import { appId, appSecret, baseUrl } from './server.ts';

/** A member of the quorum. */
export interface Member {
  readonly name: string;
  readonly publicKey: string;
  readonly secret: Uint8Array;
}

const memberOf = (name: string, { privateKey, publicKey }: typeof aliceKey): Member => {
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
  const { d } = key.export({ format: 'jwk' });
  return { name, publicKey, secret: new Uint8Array(Buffer.from(d!, 'base64url')) };
};

/** Members of the quorums, or not, as these change. */
export const keyHolders = [
  memberOf('alice', aliceKey),
  memberOf('bob', bobKey),
  memberOf('carol', carolKey),
  madeOf('dave', 18),
];

/** Its key is in no quorum. */
export const outsider = madeOf('outsider', 17);

/** A member whose secret is 32 times the same byte. */
function madeOf(name: string, byte: number): Member {
  const secret = new Uint8Array(32).fill(byte);
  const point = Buffer.from(p256.getPublicKey(secret, false));
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((each) => each.toString('base64url'));
  const key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y } as JsonWebKey, format: 'jwk' });
  const publicKey = key.export({ format: 'der', type: 'spki' }).toString('base64');
  return { name, publicKey, secret };
}

export interface CallInput {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export interface CallOptions {
  readonly signers?: readonly Member[];
  readonly idempotencyKey?: string;
  /** The access token of a user, who sends the request instead of the app. */
  readonly token?: () => Promise<string>;
  /** Called when the server can do nothing for the request any more. */
  readonly onOver?: () => void;
}

/** The answer to a call; `unknown` when it may have been executed. */
export type Outcome<Id extends OperationId = OperationId> =
  | {
      readonly kind: 'done';
      readonly status: number;
      readonly body: Operations[Id]['response'];
      readonly text: string;
      readonly isReplay: boolean;
    }
  | { readonly kind: 'refused'; readonly status: number; readonly code: string; readonly message: string }
  | { readonly kind: 'unknown' };

/** A signature as published clients make it, except that it is deterministic (RFC 6979). */
export function signatureOf(payload: object, { secret }: Member): string {
  const bytes = new TextEncoder().encode(canonicalize(payload));
  return Buffer.from(p256.sign(bytes, secret, { format: 'der', prehash: true, lowS: false })).toString(
    'base64',
  );
}

const authorization = `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`;

/** The request of a call. */
export function requestOf(
  id: OperationId,
  input: CallInput,
  options: CallOptions = {},
  token?: string,
): SentRequest {
  const { method, path } = operations[id];
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(input.path?.[name] ?? ''),
  );
  const query = input.query === undefined ? '' : `?${new URLSearchParams(input.query)}`;
  const target = filled + query;
  const signed: Record<string, string> = { 'service-app-id': appId };
  if (options.idempotencyKey !== undefined) signed['service-idempotency-key'] = options.idempotencyKey;
  const headers: Record<string, string> = {
    authorization: token === undefined ? authorization : `Bearer ${token}`,
    ...signed,
  };
  if (options.signers !== undefined) {
    const payload = { version: 1, method, url: baseUrl + target, body: input.body ?? '', headers: signed };
    headers['service-authorization-signature'] = options.signers
      .map((member) => signatureOf(payload, member))
      .join(',');
  }
  const body = input.body === undefined ? undefined : JSON.stringify(input.body);
  return { method, target, headers, body };
}
