import { hash } from 'node:crypto';
import { canonicalJson, NotCanonicalizableError } from '../crypto/canonical-json.ts';
import { ApiError } from '../errors.ts';
import type { KeyUse } from '../ports/idempotency.ts';
import { type HttpExchange, operationOf } from './http-exchange.ts';

/** The use that a request makes of an idempotency key; undefined when it sends none or its operation takes none. */
export function keyUseOf(exchange: HttpExchange): KeyUse | undefined {
  const operation = operationOf(exchange);
  const key = operation.idempotent ? exchange.headers['service-idempotency-key'] : undefined;
  if (typeof key !== 'string') return undefined;
  const { params } = exchange.route!;
  try {
    // SHA-256(operation || path parameters || body), each as RFC 8785 JSON on its own line.
    const text = [operation.id, canonicalJson({ ...params }), canonicalJson(exchange.body ?? null)].join(
      '\n',
    );
    return {
      appId: exchange.app!.id,
      key,
      fingerprint: hash('sha256', text, 'base64'),
      nowMs: exchange.nowMs,
    };
  } catch (error) {
    if (!(error instanceof NotCanonicalizableError)) throw error;
    throw new ApiError('invalid_data', `body: has no canonical form, ${error.message}`, { cause: error });
  }
}

/**
 * Whether a refusal answers every repetition of its request.
 *
 * CHOICE: 401 is not kept, since nobody who may not act shall use up the key of somebody who may, and a repetition
 * may be signed properly; nor are faults of ours (5xx), whose work was undone, so that a repetition can succeed.
 * `policy_violation` is not kept because the policy may have been changed, and `transaction_broadcast_failure` of work
 * that was undone because the chain could not be asked: nothing was signed, and the next time it may answer.
 */
export function isKeptRefusal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.code === 'policy_violation' || error.code === 'transaction_broadcast_failure') return false;
  return error.status < 500 && error.status !== 401;
}
