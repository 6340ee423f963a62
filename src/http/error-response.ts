import { ApiError, isUnavailable } from '../errors.ts';
import type { Log } from '../ports/log.ts';
import type { Answer } from './http-exchange.ts';

// Published clients repeat a 409 unless told not to, and none of ours goes away by repeating.
const dontRetry = { 'x-should-retry': 'false' };
// RFC 9110 §15.5.2: a 401 names the scheme it asks for.
const challenge = { 'www-authenticate': 'Basic realm="custos", charset="UTF-8"' };

/**
 * The answer to whatever was thrown. An `ApiError` speaks for itself; anything else is a fault of ours, whose cause
 * is logged under the request id and told to nobody.
 */
export function answerError(error: unknown, requestId: string, log: Log): Answer {
  if (!(error instanceof ApiError) && isUnavailable(error)) {
    log.warn({ request_id: requestId, err: error }, 'the database is unavailable');
    return answerError(unavailable(), requestId, log);
  }
  if (!(error instanceof ApiError)) {
    log.error({ request_id: requestId, err: error }, 'the request failed');
    const failure = new ApiError('internal_error', undefined, { data: { request_id: requestId } });
    return { status: failure.status, body: failure.toBody() };
  }
  if (error.status === 500) {
    log.error({ request_id: requestId, err: error }, 'the request failed');
  }
  return {
    status: error.status,
    body: error.toBody(),
    headers: { ...headersFor(error.status), ...error.headers },
  };
}

// Long enough for a failover to be noticed, short enough for a moment of trouble.
const RETRY_AFTER_SECONDS = 2;

function unavailable(): ApiError {
  return new ApiError('unavailable', 'the database is unavailable', {
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}

function headersFor(status: number): Record<string, string> {
  if (status === 401) return challenge;
  return status === 409 ? dontRetry : {};
}
