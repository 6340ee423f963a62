import { listEventsAbout } from '../../domain/base/events/events.ts';
import { ApiError } from '../../errors.ts';
import type { AnsweredRequest } from '../../ports/requests.ts';
import type { ControlContext } from '../control-plane.ts';
import type { DecodedItem } from '../controllable-chains.ts';
import type { RecordedExchange, RecordedRequest, SentRequest } from '../generated/schemas.ts';
import type { ApiResponse } from './own-api.ts';
import type { Redaction } from './redact.ts';
import type { RequestLog } from './request-log.ts';

/** A request without its headers and bodies. */
export function requestSummary(answered: AnsweredRequest): RecordedRequest {
  const { operation, appId, code, why } = answered;
  return {
    id: answered.id,
    received_at_ms: answered.receivedAtMs,
    machine_received_at_ms: Math.floor(answered.machineMs),
    duration_ms: Math.round(answered.durationMs * 1000) / 1000,
    method: answered.method,
    path: answered.target,
    operation: operation ?? null,
    app_id: appId ?? null,
    wallet_id: walletOf(answered) ?? null,
    status: answered.status,
    code: code ?? null,
    hint: why?.hint ?? null,
  };
}

/** A request with all stored facts. The trace of a denial and the known contracts are stored elsewhere. */
export function requestDetails(
  answered: AnsweredRequest,
  redaction: Redaction,
): Omit<RecordedExchange, 'policy_trace' | 'contract_calls'> {
  const { rawBody, responseText, effects, why } = answered;
  return {
    ...requestSummary(answered),
    request: {
      headers: redaction.requestHeaders(answered),
      body_bytes: rawBody.length,
      body: redaction.requestBody(answered),
    },
    response: {
      headers: redaction.responseHeaders(answered),
      body_bytes: responseText === undefined ? 0 : Buffer.byteLength(responseText),
      body: redaction.responseBody(answered),
    },
    user_id: answered.userId ?? null,
    signatures_sent: answered.signatures,
    authorized_by: [...(answered.signers ?? [])],
    events: effects.flatMap(({ events }) => events.map(({ id, type }) => ({ id, type }))),
    transaction_ids: effects.flatMap(({ transactions }) => transactions),
    why: why === undefined ? null : ({ ...why, docs: docsOf(answered) } as RecordedExchange['why']),
  };
}

/** The path of the page about the error code of a request. */
function docsOf({ code, status }: AnsweredRequest): string | null {
  return code === undefined || status < 400 ? null : `/docs/errors/${code}`;
}

/** The wallet of a request: the wallet that its path names, or that it created. */
function walletOf({ pathParameters, operation, status, responseText }: AnsweredRequest): string | undefined {
  const { wallet_id: id } = pathParameters ?? {};
  if (id !== undefined || operation !== 'createWallet' || status >= 400 || responseText === undefined)
    return id;
  return (JSON.parse(responseText) as { id?: string }).id;
}

/** Whether a request mentions a wallet in its path, its body or its response. */
export function namesWallet({ target, rawBody, responseText }: AnsweredRequest, walletId: string): boolean {
  return (
    target.includes(walletId) ||
    responseText?.includes(walletId) === true ||
    (rawBody.length > 0 && Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.length).includes(walletId))
  );
}

/** How many events of a type were recorded, and how many were acknowledged. */
interface EventCount {
  readonly type: string;
  readonly recorded: number;
  readonly acknowledged: number;
}

/** The parts of the contract that requests have covered. */
export interface MeasuredCoverage {
  readonly requests: number;
  /** The number of requests that match no operation of the contract. */
  readonly unknownRequests: number;
  /** The responses that the contract does not document. */
  readonly undocumented: readonly { readonly name: string; readonly count: number }[];
  readonly figures: readonly {
    readonly dimension: string;
    readonly title: string;
    readonly covered: number;
    readonly total: number;
  }[];
  /** `operation` is undefined for events and decisions. */
  readonly rows: readonly {
    readonly dimension: string;
    readonly name: string;
    readonly operation: string | undefined;
    readonly count: number;
  }[];
}

/** Measures the coverage of requests. `entries` are entries of an HTTP Archive. */
export type MeasureCoverage = (
  entries: readonly unknown[],
  eventCounts: readonly EventCount[],
) => Promise<MeasuredCoverage>;

/** More events than a transfer of many steps records. */
const MAX_LATER_EVENTS = 100;

/** Returns the events that a request recorded, and the later events of its transactions and its wallet action. */
export async function eventsOf(
  answered: AnsweredRequest,
  own: RecordedExchange['events'],
  context: Pick<ControlContext, 'read'>,
): Promise<RecordedExchange['events']> {
  const ids = [...answered.effects.flatMap(({ transactions }) => transactions), ...actionOf(answered, own)];
  const range = { ids, sinceMs: answered.receivedAtMs, limit: MAX_LATER_EVENTS };
  const later = await context.read((em) => listEventsAbout(em, range));
  const known = new Set(own.map(({ id }) => id));
  return [...own, ...later.filter(({ id }) => !known.has(id)).map(({ id, type }) => ({ id, type }))];
}

/** The id of the wallet action that the request started. */
function actionOf({ responseText }: AnsweredRequest, own: RecordedExchange['events']): string[] {
  if (responseText === undefined || !own.some(({ type }) => type.startsWith('wallet_action.'))) return [];
  const { id } = JSON.parse(responseText) as { id?: unknown };
  return typeof id === 'string' && /^[A-Za-z0-9-]+$/.test(id) ? [id] : [];
}

/**
 * Returns the log of requests.
 *
 * @throws ApiError invalid_state if the sandbox does not record requests.
 */
export function requireLog(requests: RequestLog | undefined): RequestLog {
  if (requests !== undefined) return requests;
  throw new ApiError('invalid_state', 'this sandbox records no requests; start it without `--record off`');
}

/** The response to a request that the control plane sent, without its secrets. */
export function sentRequest(
  { status, requestId, text }: ApiResponse,
  operation: string | undefined,
  redaction: Redaction,
): SentRequest {
  const responseText = text === '' ? undefined : text;
  return {
    request_id: requestId ?? null,
    status,
    body: redaction.responseBody({ responseText, status, operation }),
  };
}

type ContractCall = RecordedExchange['contract_calls'][number];

/** The maximum number of calls that are decoded in one request. */
const MAX_CALLS = 100;
/** Calls are not this deep in any request of the API, and each level takes stack. */
const MAX_DEPTH = 32;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const CALL_DATA = /^0x[0-9a-fA-F]{8,}$/;

/**
 * Decodes the calls of contracts in a request body: each object with an address in `to` and call data in `data`.
 *
 * @param decode decodes the data of a call to an address in lower case. Returns undefined for an unknown function.
 */
export function contractCallsIn(
  body: unknown,
  decode: (to: string, data: string) => DecodedItem | undefined,
): ContractCall[] {
  const calls: ContractCall[] = [];
  visit(body, '', 0);
  return calls;

  function visit(value: unknown, pointer: string, depth: number): void {
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
    if (calls.length === MAX_CALLS) return;
    const { to, data } = value as Record<string, unknown>;
    if (typeof to === 'string' && ADDRESS.test(to) && typeof data === 'string' && CALL_DATA.test(data)) {
      const decoded = decode(to.toLowerCase(), data.toLowerCase());
      if (decoded !== undefined) {
        calls.push({ pointer, to, call: { name: decoded.name, arguments: [...decoded.arguments] } });
      }
    }
    for (const [key, member] of Object.entries(value)) visit(member, `${pointer}/${key}`, depth + 1);
  }
}
