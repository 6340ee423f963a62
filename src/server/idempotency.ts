import { hash } from 'node:crypto';
import { canonicalJson, NotCanonicalizableError } from '../engine/crypto/encoding.ts';
import { ApiError } from '../errors.ts';
import type { IdempotentRequest } from '../ports/requests.ts';
import { operationOf, type RequestState } from './request-state.ts';

const HEADER = 'service-idempotency-key';

/**
 * Refuses an idempotency key for an operation that ignores keys, because the client would expect that it can safely
 * repeat the request.
 *
 * CHOICE: an operation accepts idempotency keys if it creates, sends or changes something by POST, or proposes an
 * intent. Published clients send a key only where the operation lists it. GET ignores keys. These requests refuse them:
 * requests that change nothing; PUT, PATCH and DELETE, which can be repeated anyway, except for intents and cards;
 * OAuth requests; operations whose response contains a secret or a personal link, because responses are stored in full;
 * operations whose body contains account numbers or proofs of identity, because someone who reads the database could
 * guess them from the stored fingerprint.
 *
 * @throws ApiError invalid_data
 */
export function refuseUnusedKey(state: RequestState): void {
  const { id, method, idempotent } = operationOf(state);
  if (idempotent || method === 'GET' || state.headers[HEADER] === undefined) return;
  const message = `expected no idempotency key, because \`${id}\` does not repeat its first response`;
  throw new ApiError('invalid_data', `${HEADER}: ${message}`, {
    data: { issues: [{ in: 'headers', pointer: `/${HEADER}`, message }] },
  });
}

/**
 * Returns the idempotency key of a request with the fingerprint of the request; undefined if no key was sent or the
 * operation accepts none.
 *
 * @throws ApiError invalid_data for a body without a canonical form.
 */
export function idempotentRequestOf(state: RequestState): IdempotentRequest | undefined {
  const operation = operationOf(state);
  const key = operation.idempotent ? state.headers[HEADER] : undefined;
  if (typeof key !== 'string') return undefined;
  const { params } = state.route!;
  try {
    // SHA-256(operation || path parameters || body), each as RFC 8785 JSON on its own line.
    const text = [operation.id, canonicalJson({ ...params }), canonicalJson(state.body ?? null)].join('\n');
    return {
      // INVARIANT: authentication has set the app, because no public operation accepts idempotency keys.
      appId: state.app!.id,
      // Each user has separate keys, so no user gets the response to another user's request.
      key: state.userId === undefined ? key : `${state.userId}\n${key}`,
      fingerprint: hash('sha256', text, 'base64'),
      // INVARIANT: the `preOperationHandler` of the pipeline has set the proof.
      proof: state.proof!,
      nowMs: state.nowMs,
    };
  } catch (error) {
    if (!(error instanceof NotCanonicalizableError)) throw error;
    throw new ApiError('invalid_data', `body: has no canonical form, ${error.message}`, { cause: error });
  }
}

/**
 * Returns whether a refusal is stored as the response to every repetition of its request.
 *
 * CHOICE: four kinds are not stored. 401, because an unauthorized caller must not use up the key of an authorized one,
 * and a retry may be signed correctly. 5xx, because the work was rolled back and a retry can succeed.
 * `policy_violation`, because the policy may have changed. `transaction_broadcast_failure` when the work was rolled
 * back because the chain could not be reached, since nothing was signed. Refusals that are marked as final are always
 * stored.
 */
export function isStoredRefusal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.isFinal) return true;
  if (error.code === 'policy_violation' || error.code === 'transaction_broadcast_failure') return false;
  return error.status < 500 && error.status !== 401;
}
