import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type OperationDescriptor, type OperationId, operations } from '../../src/generated/operations.ts';
import { requestValidators } from '../../src/generated/request-validators.js';
import { credentials } from './credentials.ts';

/** Every operation of the contract, as the servers of the comparison route them. */
export const allOperations: readonly OperationDescriptor[] = Object.values(operations);

/** `/v1/wallets/{wallet_id}` -> `/v1/wallets/:wallet_id`, the notation of find-my-way, fastify and express. */
export function colonPath(path: string): string {
  return path.replaceAll(/\{([^}]+)\}/g, ':$1');
}

const secretDigest = hash('sha256', credentials.appSecret, 'buffer');

/** A minimal credentials check: HTTP Basic, secrets compared by digest, and the same app id in the header. */
export function isAuthorized(headers: IncomingHttpHeaders): boolean {
  const { authorization = '' } = headers;
  if (!authorization.startsWith('Basic ')) return false;
  const text = Buffer.from(authorization.slice(6), 'base64').toString('utf8');
  const colon = text.indexOf(':');
  const appId = text.slice(0, colon);
  if (appId !== credentials.appId || headers['service-app-id'] !== appId) return false;
  return timingSafeEqual(hash('sha256', text.slice(colon + 1), 'buffer'), secretDigest);
}

/** Whether a request is valid according to the generated validators. */
export function isValid(
  id: OperationId,
  {
    path,
    query,
    headers,
    body,
  }: { path: object; query: object; headers: IncomingHttpHeaders; body: unknown },
): boolean {
  const validators = requestValidators[id];
  if (!validators.params({ path, query, headers })) return false;
  return validators.body === undefined || validators.body(body);
}

/** The query of a request target. */
export function queryOf(target: string): Record<string, string> {
  const mark = target.indexOf('?');
  return mark === -1 ? {} : Object.fromEntries(new URLSearchParams(target.slice(mark + 1)));
}
