import { ApiError } from '../errors.ts';
import type { ValidateFunction } from '../generated/validate-function.ts';
import type { Log } from '../ports/log.ts';
import { type HttpExchange, operationOf } from './http-exchange.ts';
import { describeFault } from './validation-issues.ts';

/** `always` reports violations to the caller; `sampled` checks one response in a hundred and only logs. */
export type ResponseCheckMode = 'always' | 'sampled' | 'off';

export interface ResponseCheckOptions {
  readonly mode: ResponseCheckMode;
  /** By operation and status. */
  readonly validators: Readonly<Record<string, Readonly<Record<string, ValidateFunction>>>>;
  readonly log: Log;
}

/** Validates a response against the contract. Throws `internal_error`. */
export type CheckResponse = (exchange: HttpExchange, status: number, body: unknown) => void;

const SAMPLE_EVERY = 100;

/** Creates the response check of one server. */
export function createResponseCheck({ mode, validators, log }: ResponseCheckOptions): CheckResponse {
  if (mode === 'off') return () => undefined;
  let seen = 0;
  return (exchange, status, body) => {
    seen += 1;
    if (mode === 'sampled' && seen % SAMPLE_EVERY !== 1) return;
    const { id } = operationOf(exchange);
    const validate = validators[id]?.[status];
    if (validate?.(body) === true) return;
    const fault =
      validate === undefined
        ? { pointer: '', message: `the status ${status} is not in the contract` }
        : describeFault(validate.errors ?? []);
    log.error(
      { request_id: exchange.id, operation: id, status, ...fault },
      'the response breaks the contract',
    );
    const details = mode === 'always' ? { operation: id, status, ...fault } : {};
    throw new ApiError('internal_error', undefined, { data: { request_id: exchange.id, ...details } });
  };
}
