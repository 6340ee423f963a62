import {
  createECDH,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
} from 'node:crypto';
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
  const point = pointOf(secret);
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

/** A signature as published clients make it, except that it is deterministic. */
export function signatureOf(payload: object, { secret }: Member): string {
  const digest = createHash('sha256').update(canonicalize(payload)!).digest();
  const nonce = createHmac('sha256', secret).update(digest).digest();
  const [z, k, d] = [digest, nonce, Buffer.from(secret)].map(numberOf) as [bigint, bigint, bigint];
  const r = numberOf(pointOf(nonce).subarray(1, 33)) % ORDER;
  const s = (inverse(k % ORDER) * (z + r * d)) % ORDER;
  const numbers = Buffer.concat([derInteger(r), derInteger(s)]);
  return Buffer.concat([Buffer.of(0x30, numbers.length), numbers]).toString('base64');
}

/** The order of P-256 (FIPS 186-5). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

/** OpenSSL multiplies forty times as fast as a library in JavaScript. */
function pointOf(secret: Uint8Array): Buffer {
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(secret);
  return curve.getPublicKey();
}

/** Modulo the order, by the extended Euclidean algorithm. */
function inverse(value: bigint): bigint {
  let [low, high, x, y] = [value, ORDER, 1n, 0n];
  while (low > 1n) {
    const quotient = high / low;
    [low, high, x, y] = [high - quotient * low, low, y - quotient * x, x];
  }
  return ((x % ORDER) + ORDER) % ORDER;
}

function derInteger(value: bigint): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  const content = bytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
  return Buffer.concat([Buffer.of(0x02, content.length), content]);
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
