import { ApiError } from '../errors.ts';

// Digits alone, no sign, fraction or exponent, and small enough to be an exact number.
const UNIX_MS = /^(?:0|[1-9][0-9]{0,15})$/;

/**
 * Reads `service-request-expiry` and refuses a request that arrives after it. Judged before any signature, and
 * also where no signature is asked for.
 *
 * Units: Unix ms. The very millisecond of the expiry still passes.
 * Result: the expiry, or undefined when the header is not sent. Throws `request_expired`, for a malformed value too.
 */
export function readRequestExpiry(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const expiryMs = UNIX_MS.test(header) ? Number(header) : Number.NaN;
  if (!Number.isSafeInteger(expiryMs)) {
    throw new ApiError(
      'request_expired',
      'The request expiry must be a Unix timestamp in milliseconds, written in decimal digits.',
    );
  }
  if (expiryMs < nowMs) {
    throw new ApiError(
      'request_expired',
      `The request has expired: its expiry was ${expiryMs}, the server's time is ${nowMs}.`,
    );
  }
  return expiryMs;
}
