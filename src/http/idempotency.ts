import { hash } from 'node:crypto';
import { canonicalJson, NotCanonicalizableError } from '../crypto/canonical-json.ts';
import { ApiError } from '../errors.ts';
import type { KeyUse } from '../ports/idempotency.ts';
import { type HttpExchange, operationOf } from './http-exchange.ts';

/**
 * The idempotency key of a request with its fingerprint; undefined if none is sent or the operation does not support
 * them.
 */
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
      // The keys of a user are the user's own: another one's response is never repeated.
      key: exchange.userId === undefined ? key : `${exchange.userId}\n${key}`,
      fingerprint: hash('sha256', text, 'base64'),
      // INVARIANT: set by authentication; no public operation supports idempotency keys.
      proof: exchange.proof!,
      nowMs: exchange.nowMs,
    };
  } catch (error) {
    if (!(error instanceof NotCanonicalizableError)) throw error;
    throw new ApiError('invalid_data', `body: has no canonical form, ${error.message}`, { cause: error });
  }
}

/**
 * Whether a refusal is stored as the response to every replay of its request.
 *
 * CHOICE: not stored are 401, because an unauthorized caller must not use up the key of an authorized one and a retry
 * may be signed correctly; 5xx, because the work was rolled back and a retry can succeed; `policy_violation`, because
 * the policy may have changed; and `transaction_broadcast_failure` when the work was rolled back because the chain
 * could not be reached, since nothing was signed.
 */
export function isStoredRefusal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.isFinal) return true;
  if (error.code === 'policy_violation' || error.code === 'transaction_broadcast_failure') return false;
  return error.status < 500 && error.status !== 401;
}
