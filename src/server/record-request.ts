import { ApiError, type ErrorCode } from '../errors.ts';
import type { AnsweredRequest, RefusedRequest, Why } from '../ports/requests.ts';
import type { Brand } from './brand.ts';
import type { Answer, RequestState } from './request-state.ts';

/** A response as it was sent. */
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

/** The facts of a refusal. `error`: undefined for a repeated stored refusal, and when overloaded. */
export function refusedOf(state: RequestState, answer: Answer, error: unknown): RefusedRequest {
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
    responseHeaders: answer.headers ?? {},
    nowMs: state.nowMs,
  };
}

/** The same refusal with `data.hint`. Every schema of errors has `data`. */
export function withHint(answer: Answer, hint: string): Answer {
  const body = bodyOf(answer);
  return {
    status: answer.status,
    headers: answer.headers ?? {},
    body: { ...body, data: { ...body.data, hint } },
  };
}

/**
 * Why a request did not end as its client may expect. An injected fault is reported only where no refusal explains
 * more.
 */
export function whyOf(
  injected: RequestState['injected'],
  status: number,
  explain: () => Why | undefined,
): Why | undefined {
  if (status < 400 || injected?.isOutcome === true) return injected?.why;
  return explain();
}

/** The facts that the pipeline has at the end of a request. */
interface Ending extends Written {
  readonly sent: Answer;
  readonly refusal: unknown;
  readonly why: Why | undefined;
  readonly startedMs: number;
  readonly durationMs: number;
  readonly brand: Brand | undefined;
}

/** A constant, but its getter calls the operating system each time. */
const { timeOrigin } = performance;

/** The status of requests without a response, as in HTTP Archives of browsers. */
const NO_RESPONSE = 0;

/**
 * HOT: runs for every request of a sandbox (bench `recorder`), so it copies nothing.
 *
 * INVARIANT: the record refers neither to the request, nor to the response, nor to the socket, and so does not keep
 * them in memory.
 */
export function answeredOf(state: RequestState, ending: Ending): AnsweredRequest {
  const { request, response, route } = state;
  const { sent, refusal, why, brand } = ending;
  const isCut = state.injected?.isCut === true;
  const code = sent.status < 400 || isCut ? undefined : codeOf(sent, refusal);
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
    status: isCut ? NO_RESPONSE : sent.status,
    code: code === undefined || brand === undefined ? code : brand.writeText(code),
    responseHeaders: isCut ? [] : headersOf(response, ending),
    responseText: isCut ? undefined : ending.text,
    why: why === undefined || brand === undefined ? why : JSON.parse(brand.writeText(JSON.stringify(why))),
  };
}

/**
 * Most responses have no other headers than those written with their status. Checking this takes less time than copying
 * an empty list.
 */
function headersOf(
  response: RequestState['response'],
  { headers }: Ending,
): AnsweredRequest['responseHeaders'] {
  return response.getHeaderNames().length === 0 ? [headers] : [response.getHeaders(), headers];
}

function bodyOf({ body, text }: Answer): RefusalBody {
  return (body ?? (text === undefined ? {} : JSON.parse(text))) as RefusalBody;
}

/** The error code of a refusal, even where it is not sent. */
export function codeOf(answer: Answer, error: unknown): ErrorCode | undefined {
  if (error instanceof ApiError) return error.code;
  const { code } = bodyOf(answer);
  if (code !== undefined) return code as ErrorCode;
  if (answer.status === 404) return 'not_found';
  return answer.status === 503 ? 'unavailable' : error === undefined ? undefined : 'internal_error';
}
