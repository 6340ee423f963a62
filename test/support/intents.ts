import type { IntentResponse } from '../../src/generated/schemas.ts';
import { type CallOptions, call, refusal, signRequest } from './call.ts';
import type { TestSandbox } from './sandbox.ts';

/** The signed part of an intent. */
export type Proposed = Pick<IntentResponse, 'intent_id' | 'request_details'> &
  Partial<Pick<IntentResponse, 'custom_expiry' | 'expires_at'>>;

/** Headers of an intent's request that are signed in addition to the app id. */
export interface SignedHeaders {
  /**
   * The `service-request-expiry` of the request that created the intent, in Unix ms. This is the default. Null omits
   * it.
   */
  readonly expiryMs?: number | null | undefined;
}

/** Makes a member's signature of the proposed request, like published clients. */
export function signIntent(
  { prefix, appId }: Pick<TestSandbox, 'prefix' | 'appId'>,
  { request_details: { method, url, ...rest }, custom_expiry, expires_at }: Omit<Proposed, 'intent_id'>,
  privateKey: string,
  { expiryMs = custom_expiry === true ? expires_at : undefined }: SignedHeaders = {},
): string {
  const headers: Record<string, string> = { [`${prefix}-app-id`]: appId };
  if (typeof expiryMs === 'number') headers[`${prefix}-request-expiry`] = String(expiryMs);
  const body = 'body' in rest ? rest.body : undefined;
  return signRequest({ baseUrl: '' }, { method, target: url, body }, headers, privateKey);
}

/** The body that a member sends: a signature and its time. The default time is now. */
export function authorizationOf(
  sandbox: TestSandbox,
  intent: Proposed,
  privateKey: string,
  { timestamp = sandbox.clock.now(), ...headers }: SignedHeaders & { timestamp?: number } = {},
) {
  return {
    path: { intent_id: intent.intent_id },
    body: { signature: signIntent(sandbox, intent, privateKey, headers), timestamp },
  };
}

/** Signs an intent like the holder of a key, and returns the intent. */
export async function authorize(
  sandbox: TestSandbox,
  intent: Proposed,
  privateKey: string,
  headers: SignedHeaders & { timestamp?: number } = {},
  options: CallOptions = {},
): Promise<IntentResponse> {
  const input = authorizationOf(sandbox, intent, privateKey, headers);
  return (await call(sandbox, 'authorizeIntent', input, options)).body;
}

/** Sends a signature that must be refused, and returns status and code. */
export async function refusedSignature(
  sandbox: TestSandbox,
  intent: Proposed,
  privateKey: string,
  headers: SignedHeaders & { timestamp?: number } = {},
  options: CallOptions = {},
): Promise<string> {
  const input = authorizationOf(sandbox, intent, privateKey, headers);
  const { status, body } = await refusal(sandbox, 'authorizeIntent', input, options);
  return `${status} ${body.code}`;
}

/** Returns the current state of the intent. */
export async function readIntent(sandbox: TestSandbox, intent: Proposed): Promise<IntentResponse> {
  return (await call(sandbox, 'getIntent', { path: { intent_id: intent.intent_id } })).body;
}

/** Returns the payloads of an intent's events, oldest first. */
export async function intentEvents(
  sandbox: TestSandbox,
  intentId: string,
): Promise<Record<string, unknown>[]> {
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ payload: string }[]>(
      'select payload from outbox_events where resource_id = ? order by sequence',
      [intentId],
    );
  return rows.map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
}
