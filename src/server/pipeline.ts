import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Refusals, RefusedResources, Why } from '../ports/refusals.ts';
import type { RecordRequest } from '../ports/requests.ts';
import type { Clock, Log } from '../ports/runtime.ts';
import type { Admission } from './admission.ts';
import type { RecordDenial } from './audit.ts';
import { type Authenticate, requireSameClient, sendsCredentialsInBody } from './authenticate.ts';
import type { Brand } from './brand.ts';
import { type ContractOptions, createContract, requestOf } from './contract.ts';
import { errorAnswer } from './error-response.ts';
import { answerPreflight } from './origins.ts';
import type { RateLimiter } from './rate-limit.ts';
import {
  createBodyReader,
  discardBody,
  inTime,
  keepBody,
  LARGE_BODY_BYTES,
  type ReadBody,
  RequestAbortedError,
} from './read-body.ts';
import { readProof } from './request-proof.ts';
import {
  type Answer,
  answeredOf,
  beginState,
  codeOf,
  isOpenWithoutBody,
  type OperationHandlers,
  operationOf,
  type RequestState,
  refusedOf,
  resourcesOf,
  unansweredOf,
  type Written,
  whyOf,
  withHint,
} from './request-state.ts';
import type { Operation, RequestValidators } from './route-index.ts';
import { createTransportGuard, refuseDuplicateHeaders, type TransportRules } from './transport-guards.ts';
import { writeTogether } from './write-together.ts';

/** Called with the outcome of every request, for metrics. `code` is the error code of a refusal. */
type Observe = (operation: string, status: number, durationMs: number, code: string | undefined) => void;

/** Records requests as spans of traces. */
interface RequestTracer {
  request(headers: IncomingHttpHeaders, work: () => Promise<void>): Promise<void>;
  /**
   * Completes the span. Called at the end of `work`.
   * @returns the id of the trace.
   */
  describe(end: {
    readonly operation: string;
    readonly method: string;
    readonly status: number;
    readonly code: string | undefined;
  }): string | undefined;
}

export interface PipelineOptions {
  /** See `ContractOptions`. */
  readonly definition: ContractOptions['definition'];
  readonly operations: readonly Operation[];
  readonly validators: Readonly<Record<string, RequestValidators>>;
  readonly bodyShapes?: ContractOptions['bodyShapes'];
  readonly handlers: OperationHandlers;
  /** Refuses some requests that the schemas accept, such as text with U+0000. */
  readonly checkInput?: ((state: RequestState) => void) | undefined;
  /** Applies an injected fault to a request, before its handler runs. Throws to refuse the request. */
  readonly injectFault?: ((state: RequestState) => Promise<void>) | undefined;
  readonly transport: TransportRules;
  readonly authenticate: Authenticate;
  /** Default: requests are not traced. */
  readonly tracer?: RequestTracer | undefined;
  /** Default: every request is admitted. */
  readonly admission?: Pick<Admission, 'enter' | 'leave'> | undefined;
  readonly rateLimiter?: RateLimiter | undefined;
  /** Default: a reader with a budget of its own. */
  readonly readBody?: ReadBody | undefined;
  readonly brand?: Brand | undefined;
  readonly publicBaseUrls: () => readonly string[];
  /** See `ProofOptions`. */
  readonly isHostSigned: boolean;
  readonly clock: Clock;
  /** Returns the time of a request with this method, if it differs from the clock's. */
  readonly timeOf?: ((method: string | undefined) => number) | undefined;
  readonly log: Log;
  readonly newRequestId: () => string;
  readonly observe?: Observe | undefined;
  /** Explains refusals, for the record and for `data.hint`. */
  readonly refusals?: Refusals | undefined;
  /** Records denials in the audit log before they are sent. */
  readonly recordDenial?: RecordDenial | undefined;
  readonly record?: RecordRequest | undefined;
  /** Returns whether a successful request is logged at `debug`, for example one of a page that polls. Default: none. */
  readonly isQuiet?: (state: RequestState) => boolean;
  /** The share of successful requests that are logged, from 0 to 1. Slow requests are always logged. Default: all. */
  readonly loggedShare?: number | undefined;
}

/** Handles one request and sends its response. Never rejects. */
export type Pipeline = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The response to a request that was not admitted. */
type Refused = Answer & { readonly isRefused: true };

/** Stands for the operation in logs and metrics if none matches the request. */
const NO_OPERATION = 'none';

/** CHOICE: slower requests are logged, whatever the share. */
const SLOW_MS = 1_000;

/** CHOICE: the largest body of an OAuth client that is read before its credentials are known. */
const MAX_CLIENT_BODY_BYTES = 16_384;

/**
 * Creates the pipeline. The path of every request: transport (HTTPS) -> match -> admission -> credentials -> rate limit
 * -> body -> validate -> work limit -> expiry and proof -> handler -> response. Each step throws to refuse the request.
 *
 * INVARIANT: no part of a body is in memory before the credentials in the headers have been checked. Bodies of
 * operations that need neither credentials nor a body are never read. OAuth clients may send their credentials in the
 * body; such bodies are small, and are counted by address before they are read.
 */
export async function createPipeline(options: PipelineOptions): Promise<Pipeline> {
  const { brand, log, clock, admission, rateLimiter, readBody = createBodyReader() } = options;
  const guard = createTransportGuard(options.transport);
  const proofOptions = { publicBaseUrls: options.publicBaseUrls, isHostSigned: options.isHostSigned, brand };
  const finish = createFinish(options);
  const { match, backend } = await createContract({
    definition: options.definition,
    operations: options.operations,
    validators: options.validators,
    bodyShapes: options.bodyShapes,
    brand,
    async preOperationHandler(_context, state) {
      if (state.rawBody.length > LARGE_BODY_BYTES) await nextTurn();
      options.checkInput?.(state);
      if (operationOf(state).security === 'oauth-client') requireSameClient(state);
      if (rateLimiter !== undefined) {
        writeLimits(state, await rateLimiter.countWork(state));
        state.guess = rateLimiter.chargeGuess(state);
      }
      state.proof = readProof(state, guard.scheme(state.request), proofOptions);
      await options.injectFault?.(state);
    },
    handlers: options.handlers,
  });

  /** Checks the credentials, counts the request, and reads the body. */
  const receive = async (state: RequestState): Promise<void> => {
    const { request } = state;
    await options.authenticate(state);
    if (rateLimiter !== undefined) writeLimits(state, await rateLimiter.countRequest(state));
    if (isOpenWithoutBody(state)) {
      discardBody(request);
      return;
    }
    const isClientBody = sendsCredentialsInBody(state);
    const reading = readBody(
      request,
      state.remoteAddress,
      isClientBody ? MAX_CLIENT_BODY_BYTES : state.route?.operation.maxBodyBytes,
    );
    const body = await (isClientBody ? inTime(request, reading) : reading);
    if (body.bytes.length > 0) state.response.on('close', body.release);
    state.rawBody = body.bytes;
    state.isBodyRead = true;
    if (isClientBody) await options.authenticate(state);
  };

  const serve: Pipeline = async (request, response) => {
    const startedMs = performance.now();
    const state = beginState(request, response, {
      id: options.newRequestId(),
      nowMs: options.timeOf?.(request.method) ?? clock.now(),
      headers: brand === undefined ? request.headers : brand.readHeaders(request.headers),
      remoteAddress: guard.clientAddress(request),
    });
    let isAdmitted = false;
    let answer: Answer | Refused | undefined;
    let refusal: unknown;
    try {
      guard.scheme(request);
      refuseDuplicateHeaders(request);
      state.route = match(state);
      answer = answerPreflight(state, match) ?? asRefused(admission?.enter(state.route?.operation));
      if (answer === undefined) {
        isAdmitted = true;
        await receive(state);
        answer = (await backend.handleRequest(requestOf(state), state)) as Answer;
      }
    } catch (error) {
      refusal = error;
    } finally {
      if (isAdmitted) admission?.leave();
      state.guess?.settle(refusal);
    }
    if (state.injected?.answer !== undefined) [answer, refusal] = [state.injected.answer, undefined];
    if (refusal instanceof RequestAbortedError) {
      log.info({ request_id: state.id }, refusal.message);
      attempt(log, () => options.record?.(unansweredOf(state, startedMs)));
      return;
    }
    if (answer === undefined && !state.isBodyRead && options.record !== undefined) {
      state.rawBody = (await keepBody(request)) ?? state.rawBody;
    }
    if (answer === undefined || 'isRefused' in answer) discardBody(request);
    if (answer === undefined) {
      refusal = await errorAfterRecording(state, refusal, options.recordDenial);
      answer = errorAnswer(refusal, state, log);
    }
    const resources = answer.status < 400 ? undefined : await resourcesOf(state, answer, options);
    finish(state, { answer, refusal, resources, startedMs });
  };
  const { tracer } = options;
  if (tracer === undefined) return serve;
  return (request, response) => tracer.request(request.headers, () => serve(request, response));
}

function asRefused(refusal: Answer | undefined): Refused | undefined {
  return refusal && { ...refusal, isRefused: true };
}

/** How a request ended. */
interface Ending {
  readonly answer: Answer | Refused;
  /** The error of a refused request. */
  readonly refusal: unknown;
  readonly resources: RefusedResources | undefined;
  /** When the request arrived, by the monotonic clock. */
  readonly startedMs: number;
}

/** Returns a function that sends the response to a request, records the request and logs it. */
function createFinish(options: PipelineOptions): (state: RequestState, ending: Ending) => void {
  const { brand, log, record } = options;
  const isSampled = shareOf(options.loggedShare ?? 1);
  return (state, { answer, refusal, resources, startedMs }) => {
    const { status } = answer;
    // Explaining and recording must not affect the response.
    const explain = (): Why | undefined =>
      attempt(log, () => options.refusals?.explain(refusedOf(state, answer, { refusal, resources })));
    const why = whyOf(state.injected, status, explain);
    const isHinted = status >= 400 && !state.injected?.answer && options.refusals?.isHintSent === true;
    const written = send(state, isHinted && why !== undefined ? withHint(answer, why.hint) : answer, {
      brand,
      // RFC 6797 section 7.2: never in a response over plain HTTP.
      isStrict: options.transport.strictTransport === true && codeOf(answer, refusal) !== 'https_required',
    });
    const durationMs = performance.now() - startedMs;
    if (record !== undefined) {
      const ended = { ...written, answer, refusal, why, startedMs, durationMs, brand };
      attempt(log, () => record(answeredOf(state, ended)));
    }
    const operation = state.route?.operation.id ?? NO_OPERATION;
    const code = status < 400 ? undefined : codeOf(answer, refusal);
    options.observe?.(operation, status, durationMs, code);
    const traceId = options.tracer?.describe({ operation, method: state.method, status, code });
    if ('isRefused' in answer) return; // The admission control logs its refusals itself.
    if (status < 400 && durationMs < SLOW_MS && !isSampled()) return;
    const level = status < 400 && options.isQuiet?.(state) === true ? 'debug' : 'info';
    log[level](
      {
        request_id: state.id,
        trace_id: traceId,
        operation,
        app: state.app?.id,
        status,
        code,
        duration_ms: Math.round(durationMs * 1000) / 1000,
        hint: isHinted ? why?.hint.split('. ', 1)[0] : undefined,
      },
      'request',
    );
  };
}

/** Runs work that must not affect the response. Logs its errors. */
function attempt<T>(log: Log, work: () => T): T | undefined {
  try {
    return work();
  } catch (err) {
    log.error({ err }, 'failed to explain or record a request');
    return undefined;
  }
}

/** Returns a function that returns true for this share of its calls, evenly distributed. */
function shareOf(share: number): () => boolean {
  let due = 0;
  return () => {
    due += share;
    if (due < 1) return false;
    due -= 1;
    return true;
  };
}

/** Records a denial. Returns the error to send: if recording fails, the error of the audit log. */
async function errorAfterRecording(
  state: RequestState,
  error: unknown,
  recordDenial: RecordDenial | undefined,
): Promise<unknown> {
  try {
    await recordDenial?.(state, error);
    return error;
  } catch (failure) {
    return failure;
  }
}

function writeLimits({ response }: RequestState, limits: Readonly<Record<string, string>> | undefined): void {
  if (limits === undefined) return;
  for (const [name, value] of Object.entries(limits)) response.setHeader(name, value);
}

interface Sending {
  readonly brand: Brand | undefined;
  readonly isStrict: boolean;
}

/** CHOICE: one year, for this host only. The server does not know whether subdomains have HTTPS. */
const STRICT_TRANSPORT = 'max-age=31536000';

/** Sends the response, in the client's brand. */
function send(state: RequestState, answer: Answer, { brand, isStrict }: Sending): Written {
  const { response } = state;
  const text = brand === undefined ? textOf(answer) : brandedTextOf(answer, brand);
  const headers: Record<string, string | number> = {
    'x-request-id': state.id,
    'x-content-type-options': 'nosniff',
  };
  if (isStrict) headers['strict-transport-security'] = STRICT_TRANSPORT;
  if (state.route?.operation.security !== 'none') headers['cache-control'] = 'no-store';
  if (text !== undefined) {
    headers['content-type'] = `${answer.fileType ?? 'application/json'}; charset=utf-8`;
    headers['content-length'] = Buffer.byteLength(text);
  }
  if (answer.headers !== undefined) Object.assign(headers, answer.headers);
  const content = state.method === 'HEAD' ? undefined : text;
  const write = state.injected?.write ?? writeTogether;
  write(response, { status: answer.status, headers }, content);
  return { headers, text };
}

function textOf({ text, body }: Answer): string | undefined {
  return text ?? (body === undefined ? undefined : JSON.stringify(body));
}

function brandedTextOf(answer: Answer, brand: Brand): string | undefined {
  // Files contain no names to translate.
  if (answer.fileType !== undefined) return answer.text;
  const body = answer.text === undefined ? answer.body : JSON.parse(answer.text);
  if (body === undefined) return undefined;
  const written = brand.writeBody(body);
  return answer.status < 400 ? JSON.stringify(written) : brand.writeText(JSON.stringify(written));
}
