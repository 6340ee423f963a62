import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { readSafeguards } from './read-safeguards.ts';

type ExpiryContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof' | 'safeguards'>;

/**
 * Refuses a signed request without an expiry, or with one too far ahead, where the app's settings require one: its
 * signatures could be sent again for as long as the owner does not change.
 *
 * @throws ApiError request_expired
 */
export async function requireShortExpiry(context: ExpiryContext): Promise<void> {
  const { require_request_expiry: maxSeconds } = await readSafeguards(context);
  if (maxSeconds === false) return;
  const expiryMs = requirePresent(context);
  if (expiryMs > context.nowMs + maxSeconds * 1000) {
    throw new ApiError(
      'request_expired',
      `expected a request expiry at most ${maxSeconds} seconds ahead, got \`${expiryMs}\`; the server's time is ${context.nowMs}`,
    );
  }
}

/**
 * Refuses an intent without an expiry where the app's settings require one: the signatures that it collects would also
 * be valid for a direct request.
 *
 * @throws ApiError request_expired
 */
export async function requireAnyExpiry(context: ExpiryContext): Promise<void> {
  const { require_request_expiry: maxSeconds } = await readSafeguards(context);
  if (maxSeconds !== false) requirePresent(context);
}

function requirePresent({ proof: { expiryMs } }: ExpiryContext): number {
  if (expiryMs !== undefined) return expiryMs;
  throw new ApiError('request_expired', 'expected the header `service-request-expiry`: this app requires it');
}
