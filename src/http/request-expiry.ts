import { ApiError } from '../errors.ts';

// Only digits, and few enough to be exact as a number.
const UNIX_MS = /^(?:0|[1-9][0-9]{0,15})$/;

/**
 * Reads `service-request-expiry` and refuses a request that arrives later. Checked before any signature, even if none
 * is required.
 *
 * Units: Unix ms; a request at exactly the expiry passes. Result: the expiry, or undefined without the header. Throws
 * `request_expired`, for a malformed value too.
 */
export function readRequestExpiry(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const expiryMs = UNIX_MS.test(header) ? Number(header) : Number.NaN;
  if (!Number.isSafeInteger(expiryMs)) {
    throw new ApiError(
      'request_expired',
      'the request expiry must be a Unix timestamp in milliseconds, in decimal digits',
    );
  }
  if (expiryMs < nowMs) {
    throw new ApiError(
      'request_expired',
      `the request has expired: its expiry was ${expiryMs}, the server's time is ${nowMs}`,
    );
  }
  return expiryMs;
}
