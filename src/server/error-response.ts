import { ApiError, isUnavailable, unavailableThing } from '../errors.ts';
import { errorCatalogue } from '../generated/errors.ts';
import type { Log } from '../ports/runtime.ts';
import type { Answer, RequestState } from './request-state.ts';

// Published clients retry a 409 unless this header is set. Retrying never resolves our conflicts.
const dontRetry = { 'x-should-retry': 'false' };
// RFC 9110 §15.5.2: a 401 names the required scheme.
const challenge = { 'www-authenticate': 'Basic realm="custos", charset="UTF-8"' };

/**
 * Returns the response to an error. An error that is not an `ApiError` is a bug or an outage. Its cause is logged with
 * the request id and never sent to the caller.
 */
export function errorAnswer(error: unknown, state: RefusedState, log: Log): Answer {
  const { id: requestId } = state;
  if (!(error instanceof ApiError) && isUnavailable(error)) {
    const message = `${unavailableThing(error)} is unavailable`;
    log.warn({ request_id: requestId, err: error }, message);
    return errorAnswer(unavailable(message), state, log);
  }
  if (!(error instanceof ApiError)) {
    log.error({ request_id: requestId, err: error }, 'request failed with an internal error');
    const failure = new ApiError('internal_error', undefined, { data: { request_id: requestId } });
    return { status: failure.status, body: failure.toBody() };
  }
  if (error.status === 500) {
    log.error({ request_id: requestId, err: error }, 'request failed with an internal error');
  }
  return {
    status: error.status,
    body: refusalBody(error, state),
    headers: { ...refusalHeaders(error.status, state), ...error.headers },
  };
}

/** The parts of a request that the response to an error depends on. */
type RefusedState = Pick<RequestState, 'id'> & Partial<Pick<RequestState, 'route' | 'headers'>>;

/**
 * Returns the body of a refusal. For codes of the OAuth RFCs, it has `error` and `error_description` (RFC 6749 §5.2),
 * which OAuth clients read.
 */
export function refusalBody(error: ApiError, { route }: Pick<RefusedState, 'route'>): object {
  const { oauthError } = errorCatalogue[error.code];
  if (route?.operation.security !== 'oauth-client' || oauthError === undefined) return error.toBody();
  const { interval, ...data } = error.data ?? {};
  return {
    error: oauthError,
    error_description: error.message,
    code: error.code,
    ...(interval === undefined ? {} : { interval }),
    ...(Object.keys(data).length === 0 ? {} : { data }),
  };
}

// Long enough for a short failover, but short enough not to delay clients after a brief outage.
const RETRY_AFTER_SECONDS = 2;

function unavailable(message: string): ApiError {
  return new ApiError('unavailable', message, {
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}

/**
 * Returns the headers of every refusal with this status.
 *
 * CHOICE: scripts of web pages get no challenge, because the browser would prompt its user for a password before the
 * script sees the 401. Only browsers send `sec-fetch-site`; other clients also send the mode.
 */
export function refusalHeaders(status: number, { headers }: RefusedState): Record<string, string> {
  if (status === 401) return isScript(headers) ? {} : challenge;
  return status === 409 ? dontRetry : {};
}

function isScript(headers: RefusedState['headers']): boolean {
  return headers?.['sec-fetch-mode'] === 'cors' && headers['sec-fetch-site'] !== undefined;
}
