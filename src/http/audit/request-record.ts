import { hash } from 'node:crypto';
import type { ApiError } from '../../errors.ts';
import type { AuditActor, AuditRecord, AuditTrail } from '../../ports/audit/audit-trail.ts';
import { type HttpExchange, operationOf } from '../http-exchange.ts';
import { MAX_IDS } from './audited-unit.ts';

/** Whether requests of an operation change something or use a key, so that each is recorded. */
export function isRecorded(exchange: HttpExchange): boolean {
  const { method, isReadOnly } = operationOf(exchange);
  return method !== 'GET' && isReadOnly !== true;
}

/**
 * Refusals that are recorded: the caller was not who it must be, or was not allowed to do it.
 *
 * CHOICE: 401 and 403, refusals of policies, and OAuth's of a wrong or used code or token. Not requests that break the
 * contract, name what does not exist, or come too often. Nor those without any credential, which guess nothing,
 * and requests over plain HTTP or from foreign pages, whose credentials are not even read.
 */
export function isDenial({ code, status }: ApiError, exchange: HttpExchange): boolean {
  if (code === 'policy_violation' || code === 'invalid_grant') return true;
  if (code === 'https_required' || code === 'foreign_host') return false;
  if (code === 'missing_or_invalid_token' && exchange.headers.authorization === undefined) return false;
  return status === 401 || status === 403;
}

/** Who sent a request. */
function actorOf(exchange: HttpExchange): AuditActor {
  const { app, userId, sessionId, headers, signers } = exchange;
  const who = {
    kind: kindOf(exchange),
    ...{ appId: app?.id, userId, sessionId },
    signers: signers === undefined || signers.size === 0 ? undefined : [...signers].map(fingerprintOf),
  };
  const claimed = headers['service-app-id'];
  const isClaim = app === undefined && typeof claimed === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(claimed);
  return isClaim ? { ...who, claimedAppId: claimed } : who;
}

function kindOf({ app, userId, publicClientNetwork, headers, route }: HttpExchange): AuditActor['kind'] {
  if (userId !== undefined) return 'user_token';
  const security = route?.operation.security;
  if (app === undefined || security === 'none' || publicClientNetwork !== undefined) return 'anonymous';
  if (security === 'oauth-client') return 'oauth_client';
  return headers.authorization === undefined ? 'web_page' : 'app_secret';
}

/** Hex of SHA-256(SubjectPublicKeyInfo). */
function fingerprintOf(publicKey: string): string {
  return hash('sha256', Buffer.from(publicKey, 'base64'));
}

/** The outcome of a request. */
interface Outcome {
  readonly status: number;
  readonly decision: AuditRecord['decision'];
  readonly code?: string;
  /** The body of the response. */
  readonly body?: unknown;
}

/** The record of a request. */
export function requestRecord(
  exchange: HttpExchange,
  audit: Pick<AuditTrail, 'digest'>,
  { status, decision, code, body }: Outcome,
): AuditRecord {
  return {
    ...beginningOf(exchange),
    appId: exchange.app?.id ?? null,
    request: audit.digest(exchange.method, exchange.target, exchange.rawBody),
    ids: idsOf(exchange, body),
    ...{ decision, status, code },
  };
}

/** What the records of one request have in common. */
export function beginningOf(
  exchange: HttpExchange,
): Pick<AuditRecord, 'atMs' | 'by' | 'operation' | 'requestId'> {
  return {
    atMs: exchange.nowMs,
    by: actorOf(exchange),
    operation: exchange.route?.operation.id ?? 'none',
    requestId: exchange.id,
  };
}

// As `ports/ids.ts` makes them: cuid2 and cuid, also after a prefix, UUIDs, and DIDs of users.
const ownId =
  /^(?:(?:[a-z]+_)*[a-z0-9]{24,25}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|did:[a-z][a-z0-9-]*:c[a-z0-9]{24})$/;

const ownName = /^[a-z][a-z0-9_]{0,63}$/;

/**
 * The ids in a request and its response: parameters of the path, `…_id` at the top of both bodies, and of the response
 * `id`, those of items, and those of resources that it wraps, such as `fiat_deposit_account`. Only what has the form of our ids: anything else could be personal data.
 */
function idsOf({ route, body }: HttpExchange, response: unknown): Record<string, string | string[]> {
  const ids: Record<string, string | string[]> = {};
  let count = 0;
  const add = (name: string, value: unknown): void => {
    // Bodies of some operations have members with names that callers choose.
    if (typeof value !== 'string' || !ownId.test(value) || !ownName.test(name) || count >= MAX_IDS) return;
    count += 1;
    ids[name] = value;
  };
  for (const given of [body, response]) {
    if (!isObject(given)) continue;
    for (const name in given) if (name.endsWith('_id')) add(name, given[name]);
  }
  const params = route?.params ?? {};
  for (const name in params) add(name, params[name]);
  if (isObject(response)) {
    add('id', response.id);
    const items: string[] = [];
    for (const name in response) {
      const value = response[name];
      if (Array.isArray(value)) addItems(items, value);
      else if (isObject(value)) add(`${name}_id`, value.id);
    }
    if (items.length > 0) ids.items = items;
  }
  return ids;
}

function addItems(ids: string[], items: readonly unknown[]): void {
  for (const item of items) {
    const id = isObject(item) ? idOfItem(item) : undefined;
    if (typeof id === 'string' && ownId.test(id) && ids.length < MAX_IDS) ids.push(id);
  }
}

function idOfItem(item: Record<string, unknown>): unknown {
  // Batches wrap what they made.
  const { id } = isObject(item.result) ? item.result : isObject(item.wallet) ? item.wallet : item;
  return id;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
