import { listEventsAbout } from '../../domain/base/events/events.ts';
import { ApiError } from '../../errors.ts';
import type { AnsweredRequest } from '../../ports/requests.ts';
import type { ControlContext } from '../control-plane.ts';
import type { DecodedItem } from '../controllable-chains.ts';
import type { RecordedExchange, RecordedRequest, SentRequest } from '../generated/schemas.ts';
import { type References, readReferences } from '../names.ts';
import type { ApiResponse } from './own-api.ts';
import type { Redaction } from './redact.ts';
import type { RequestLog } from './request-log.ts';

/** Returns requests as rows of lists, with the names of the resources that they are about. */
export async function requestSummaries(
  requests: readonly AnsweredRequest[],
  { log, read }: { readonly log: RequestLog; readonly read: ControlContext['read'] },
): Promise<RecordedRequest[]> {
  const rows = requests.map((answered) => ({ answered, references: referencesOf(answered) }));
  const hasReferences = rows.some(({ references: { subject, userId } }) => (subject ?? userId) !== undefined);
  const all = rows.map(({ references }) => references);
  const named = hasReferences ? await read((em) => readReferences(em, all)) : () => unnamed;
  return rows.map(({ answered, references }) => {
    const { id: requestId, operation, appId, code, why } = answered;
    const cause = references.subject === undefined ? undefined : log.causeOf(references.subject.id);
    return {
      id: requestId,
      received_at_ms: answered.receivedAtMs,
      machine_received_at_ms: Math.floor(answered.machineMs),
      duration_ms: Math.round(answered.durationMs * 1000) / 1000,
      method: answered.method,
      path: answered.target,
      operation: operation ?? null,
      app_id: appId ?? null,
      wallet_id: references.walletId ?? null,
      ...named(references),
      caused_by: cause === requestId ? null : (cause ?? null),
      status: answered.status,
      code: code ?? null,
      hint: why?.hint ?? null,
    };
  });
}

const unnamed = { subject: null, wallet: null, user: null };

/** The types of resources whose path parameter has a different name. */
const typesOfParameters: Readonly<Record<string, string>> = {
  action_id: 'wallet_action',
  endpoint_id: 'webhook_endpoint',
};

/** Returns the resources of a request: the ones in its path, the one that it created, and the user who sent it. */
function referencesOf(answered: AnsweredRequest): References {
  const parameters = answered.pathParameters ?? {};
  const last = Object.keys(parameters).findLast((name) => name.endsWith('_id'));
  const subject =
    last === undefined
      ? createdBy(answered)
      : { type: typesOfParameters[last] ?? last.slice(0, -'_id'.length), id: parameters[last]! };
  return {
    appId: answered.appId ?? null,
    subject,
    walletId: parameters.wallet_id ?? (subject?.type === 'wallet' ? subject.id : undefined),
    userId: answered.userId ?? parameters.user_id ?? (subject?.type === 'user' ? subject.id : undefined),
  };
}

/**
 * Returns the resource that a request has created. Its type is derived from the operation's name: `createKeyQuorum`
 * creates a `key_quorum`.
 */
function createdBy({ operation, status, responseText, why }: AnsweredRequest): References['subject'] {
  // A fault rule has sent this response, which may be any text. Nothing was created.
  if (why?.evidence.effect === 'respond') return undefined;
  const [, name] = /^create([A-Z]\w*)$/.exec(operation ?? '') ?? [];
  if (name === undefined || status >= 400 || responseText === undefined) return undefined;
  const { id } = JSON.parse(responseText) as { id?: unknown };
  const type = name.replaceAll(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  return typeof id === 'string' ? { type, id } : undefined;
}

/** Returns what the log stores about a request, except its summary, the trace of a denial and the decoded calls. */
export function requestDetails(
  answered: AnsweredRequest,
  redaction: Redaction,
): Omit<RecordedExchange, keyof RecordedRequest | 'policy_trace' | 'contract_calls'> {
  const { rawBody, responseText, effects, why } = answered;
  return {
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

/** Returns the path of the page about a request's error code, or null if the request succeeded. */
function docsOf({ code, status }: AnsweredRequest): string | null {
  return code === undefined || status < 400 ? null : `/docs/errors/${code}`;
}

/** Returns whether a request mentions a wallet in its path, its body or its response. */
export function namesWallet({ target, rawBody, responseText }: AnsweredRequest, walletId: string): boolean {
  return (
    target.includes(walletId) ||
    responseText?.includes(walletId) === true ||
    (rawBody.length > 0 && Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.length).includes(walletId))
  );
}

/** The number of recorded events of a type, and the number of those that endpoints have acknowledged. */
interface EventCount {
  readonly type: string;
  readonly recorded: number;
  readonly acknowledged: number;
}

/** The parts of the API document that requests have covered. */
export interface MeasuredCoverage {
  readonly requests: number;
  /** The number of requests that match no operation of the API document. */
  readonly unknownRequests: number;
  /** The responses that the API document does not describe. */
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

/** Measures the coverage of requests, given as entries of an HTTP Archive. */
export type MeasureCoverage = (
  entries: readonly unknown[],
  eventCounts: readonly EventCount[],
) => Promise<MeasuredCoverage>;

/** The maximum number of later events. A transfer with many steps records fewer. */
const MAX_LATER_EVENTS = 100;

/**
 * Returns the events that a request has recorded, and the later events of its transactions and of its wallet action.
 */
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

/** Returns a list with the id of the wallet action that a request has started. The list is empty if there is none. */
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

/** Returns the response to a request that the control plane has sent, without secrets. */
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
/** The maximum depth of calls. No request of the API nests them so deeply, and each level takes stack. */
const MAX_DEPTH = 32;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const CALL_DATA = /^0x[0-9a-fA-F]{8,}$/;

/**
 * Decodes the calls of smart contracts in a request body: each object with an address in `to` and call data in `data`.
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
