import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, type ErrorCode } from '../errors.ts';
import type { AuthenticatedApp, RequestProof } from '../ports/operation-context.ts';
import type { Refusals, RefusedRequest, RefusedResources, Why } from '../ports/refusals.ts';
import type { AnsweredRequest, StoredEffects } from '../ports/requests.ts';
import type { Log } from '../ports/runtime.ts';
import type { Brand } from './brand.ts';
import type { Operation } from './route-index.ts';

/** The operation that matches method and path, and the decoded path parameters. */
export interface Route {
  readonly operation: Operation;
  readonly params: Record<string, string>;
}

/** One request on its way through the pipeline. Each step reads what earlier steps have set. */
export interface RequestState {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Sent as `x-request-id`, logged, and contained in every 500. */
  readonly id: string;
  readonly method: string;
  /** The path and the query, exactly as sent. */
  readonly target: string;
  /** The path alone, as sent. */
  readonly path: string;
  /** The headers under their neutral names, whatever the brand of the client. */
  readonly headers: IncomingHttpHeaders;
  /** The value of `clock.now()` when the request arrived, Unix ms. */
  readonly nowMs: number;
  readonly remoteAddress: string;
  rawBody: Buffer;
  isBodyRead: boolean;
  route: Route | undefined;
  /** The name of the cell that serves the request. Undefined until it is known, and on servers without cells. */
  cell: string | undefined;
  /** The app of the credentials. Undefined before authentication, and for public operations called without an app. */
  app: AuthenticatedApp | undefined;
  /** Whether the secret of `app` was verified. If not, the caller may be anybody who knows the app's id. */
  hasAppSecret: boolean;
  /** The user whose access token was sent instead of the app's secret. */
  userId: string | undefined;
  /** The session of that access token. */
  sessionId: string | undefined;
  /** The network of an OAuth client without a secret; undefined for all other callers. */
  publicClientNetwork: string | undefined;
  query: Record<string, unknown>;
  /** The parsed body, with neutral names; undefined if the operation has none. */
  body: unknown;
  proof: RequestProof | undefined;
  /** The public keys whose signatures authorized the request. */
  signers: ReadonlySet<string> | undefined;
  /** The charged guess of a request with a one-time code, until it is settled. */
  guess: Guess | undefined;
  /** The changes that the units of work of the request have stored, if they are recorded. */
  effects: readonly StoredEffects[];
  /** Whether the denial was recorded in the transaction of the changes that the refused request keeps. */
  isDenialRecorded?: boolean;
  /** The fault that a rule of a sandbox injected into the request. */
  injected: InjectedFault | undefined;
}

interface Beginning {
  readonly id: string;
  readonly nowMs: number;
  readonly headers: IncomingHttpHeaders;
  readonly remoteAddress: string;
}

/** Every property is set from the start, so that all states share one hidden class in V8. */
export function beginState(
  request: IncomingMessage,
  response: ServerResponse,
  beginning: Beginning,
): RequestState {
  const target = request.url ?? '/';
  const mark = target.indexOf('?');
  return {
    request,
    response,
    id: beginning.id,
    method: request.method ?? 'GET',
    target,
    path: mark === -1 ? target : target.slice(0, mark),
    headers: beginning.headers,
    nowMs: beginning.nowMs,
    remoteAddress: beginning.remoteAddress,
    rawBody: nothing,
    isBodyRead: false,
    route: undefined,
    cell: undefined,
    app: undefined,
    hasAppSecret: false,
    userId: undefined,
    sessionId: undefined,
    publicClientNetwork: undefined,
    query: {},
    body: undefined,
    proof: undefined,
    signers: undefined,
    guess: undefined,
    effects: nothingStored,
    injected: undefined,
  };
}

const nothing = Buffer.alloc(0);
const nothingStored: RequestState['effects'] = [];

/** A guess at a one-time code, charged before the code is compared. */
export interface Guess {
  /**
   * Refunds the charge unless the code was wrong.
   * @param error the refusal of the request, if it was refused.
   */
  settle(error: unknown): void;
}

interface InjectedFault {
  readonly why: Why;
  /** Whether the fault is why the client gets no regular response. */
  readonly isOutcome: boolean;
  /** Whether the client gets no response. */
  readonly isCut?: boolean;
  /** Sends the response in an unusual way. Default: it is sent as usual. */
  readonly write?: WriteResponse;
  /** The response that replaces any other one. It gets no hint. */
  readonly answer?: Answer;
}

/** Sends a response. `text` is undefined without a body. */
export type WriteResponse = (
  response: ServerResponse,
  head: { readonly status: number; readonly headers: Record<string, string | number> },
  text: string | undefined,
) => void;

/**
 * A response to be sent. `text` is sent as it is, `body` is serialized first. Without either, the response has no body.
 */
export interface Answer {
  readonly status: number;
  /** The media type of a `text` that is a file; undefined for JSON. */
  readonly fileType?: string;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Handles the valid requests of one operation. openapi-backend passes its own context as the first argument. */
type OperationHandler = (context: unknown, state: RequestState) => Promise<Answer>;

export type OperationHandlers = Readonly<Record<string, OperationHandler>>;

export function operationOf(state: RequestState): Operation {
  if (state.route === undefined) throw new Error(`request ${state.id} was not matched to an operation`);
  return state.route.operation;
}

/** A response, as it was sent. */
export interface Written {
  readonly headers: Readonly<Record<string, string | number>>;
  readonly text: string | undefined;
}

/** The body of an error response. */
interface RefusalBody {
  readonly error?: string;
  readonly code?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/**
 * Returns what an explanation of a refusal needs. `error` is undefined for a stored refusal that is sent again, and
 * when the server is overloaded.
 */
export function refusedOf(
  state: RequestState,
  answer: Answer,
  {
    refusal: error,
    resources,
  }: { readonly refusal: unknown; readonly resources?: RefusedResources | undefined },
): RefusedRequest {
  const { error: message = '', data = {} } = bodyOf(answer);
  return {
    method: state.method,
    path: state.path,
    headers: state.request.headers,
    operation: state.route?.operation.id,
    status: answer.status,
    code: codeOf(answer, error),
    message,
    data,
    body: state.body,
    signers: state.signers,
    responseHeaders: answer.headers ?? {},
    nowMs: state.nowMs,
    resources,
  };
}

/** Returns facts about the resources that a refused request names, or undefined if they cannot be read. */
export async function resourcesOf(
  { app, route, body, injected }: RequestState,
  answer: Answer,
  { log, refusals }: { readonly log: Log; readonly refusals?: Refusals | undefined },
): Promise<RefusedResources | undefined> {
  // A fault rule explains itself, and `data` of its response may be anything.
  if (injected?.isOutcome === true) return undefined;
  const pathParameters = route?.params ?? {};
  const { data = {} } = bodyOf(answer);
  const hasResources =
    Object.keys(pathParameters).length > 0 ||
    'decision' in data ||
    route?.operation.id === 'getWalletByAddress';
  if (refusals?.resources === undefined || app === undefined || !hasResources) return undefined;
  try {
    return await refusals.resources({
      ...{ appId: app.id, operation: route?.operation.id, pathParameters, data, body },
    });
  } catch (err) {
    log.error({ err }, 'failed to read the names for the explanation of a refusal');
    return undefined;
  }
}

/** Returns the refusal with `data.hint`, which the schemas of all errors allow. */
export function withHint(answer: Answer, hint: string): Answer {
  const body = bodyOf(answer);
  return {
    status: answer.status,
    headers: answer.headers ?? {},
    body: { ...body, data: { ...body.data, hint } },
  };
}

/**
 * Returns why a request did not end as its client may expect. An injected fault is reported only if there is no refusal
 * to explain.
 */
export function whyOf(
  injected: RequestState['injected'],
  status: number,
  explain: () => Why | undefined,
): Why | undefined {
  if (status < 400 || injected?.isOutcome === true) return injected?.why;
  return explain();
}

/** What the pipeline knows at the end of a request. */
interface Ending extends Written {
  readonly answer: Answer;
  readonly refusal: unknown;
  readonly why: Why | undefined;
  readonly startedMs: number;
  readonly durationMs: number;
  readonly brand: Brand | undefined;
}

/** Read once: it is a constant, but its getter calls the operating system each time. */
const { timeOrigin } = performance;

/** The status of requests without a response, as in browsers' HTTP Archives. */
const NO_RESPONSE = 0;

/**
 * Returns the record of a request. HOT: runs for every request of a sandbox (bench `recorder`), so it copies nothing.
 *
 * INVARIANT: the record refers neither to the request, nor to the response, nor to the socket, so it does not keep them
 * in memory.
 */
export function answeredOf(state: RequestState, ending: Ending): AnsweredRequest {
  const { request, response, route } = state;
  const { answer, refusal, brand } = ending;
  // A response to a client that has left is destroyed before anything is written to it.
  const isCut = state.injected?.isCut === true || response.destroyed;
  const why =
    ending.why ??
    (response.destroyed
      ? whyClientLeft(`The request ended with the status ${answer.status}.`, ending.durationMs)
      : undefined);
  const code = answer.status < 400 || isCut ? undefined : codeOf(answer, refusal);
  return {
    id: state.id,
    method: state.method,
    target: state.target,
    httpVersion: request.httpVersion,
    rawHeaders: request.rawHeaders,
    rawBody: state.rawBody,
    receivedAtMs: state.nowMs,
    machineMs: timeOrigin + ending.startedMs,
    durationMs: ending.durationMs,
    operation: route?.operation.id,
    pathParameters: route?.params,
    appId: state.app?.id,
    userId: state.userId,
    signatures: state.proof?.signatures.length ?? 0,
    signers: state.signers,
    effects: state.effects,
    status: isCut ? NO_RESPONSE : answer.status,
    code: code === undefined || brand === undefined ? code : brand.writeText(code),
    responseHeaders: isCut ? [] : headersOf(response, ending),
    responseText: isCut ? undefined : ending.text,
    why: why === undefined || brand === undefined ? why : JSON.parse(brand.writeText(JSON.stringify(why))),
  };
}

/**
 * Returns the record of a request whose client closed the connection before its handler ran. Such a request changes
 * nothing.
 */
export function unansweredOf(state: RequestState, startedMs: number): AnsweredRequest {
  const durationMs = performance.now() - startedMs;
  const why = state.injected?.why ?? whyClientLeft('The server executed nothing.', durationMs);
  const ending = { answer: { status: NO_RESPONSE }, refusal: undefined, headers: {}, text: undefined };
  return {
    ...answeredOf(state, { ...ending, why, startedMs, durationMs, brand: undefined }),
    ...{ status: NO_RESPONSE, responseHeaders: [] },
  };
}

/** Explains a request without a response, whose client has closed the connection. */
function whyClientLeft(what: string, durationMs: number): Why {
  const waitedMs = Math.round(durationMs);
  const text = `The client closed the connection after ${waitedMs} ms, before the response. ${what}`;
  const step = 'Give the client a longer timeout, or test how it reacts.';
  return {
    kind: 'fault',
    hint: `${text} ${step}`,
    evidence: { effect: 'client_left', duration_ms: waitedMs },
    problems: [
      {
        subject: 'the connection',
        expected: 'a client that waits for the response',
        came: `one that closed the connection after ${waitedMs} ms`,
        at_fault: null,
        ...{ text, next_step: step },
      },
    ],
    repairs: [{ kind: 'repeat', title: 'Send the request again', repeat: {} }],
  };
}

/**
 * Returns the headers of a response, as a list of one or two objects. Most responses have no headers other than those
 * written with their status. Checking this takes less time than copying an empty list.
 */
function headersOf(
  response: RequestState['response'],
  { headers }: Ending,
): AnsweredRequest['responseHeaders'] {
  return response.getHeaderNames().length === 0 ? [headers] : [response.getHeaders(), headers];
}

function bodyOf({ body, text, fileType }: Answer): RefusalBody {
  const isJson = text !== undefined && fileType === undefined;
  return (body ?? (isJson ? JSON.parse(text) : {})) as RefusalBody;
}

/** Returns the error code of a refusal, even if the response does not contain it. */
export function codeOf(answer: Answer, error: unknown): ErrorCode | undefined {
  if (error instanceof ApiError) return error.code;
  const { code } = bodyOf(answer);
  if (code !== undefined) return code as ErrorCode;
  if (answer.status === 404) return 'not_found';
  return answer.status === 503 ? 'unavailable' : error === undefined ? undefined : 'internal_error';
}

/** Returns whether an operation needs no credentials and defines no body (RFC 9110 section 9.3.1). */
export function isOpenWithoutBody({ route }: RequestState): boolean {
  return route?.operation.security === 'none' && !route.operation.hasBody;
}
