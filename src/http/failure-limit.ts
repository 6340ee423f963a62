import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from '../errors.ts';
import { networkOf } from './rate-limit.ts';

/** Counts refused credentials by client address. */
export interface FailureLimit {
  /** @throws ApiError too_many_requests for an address that has used up its failures. */
  requireRoom(address: string): Promise<void>;
  count(address: string): Promise<void>;
}

/**
 * A limit of failures in the memory of this process.
 *
 * CHOICE: each process counts for itself: a count in the database would cost the look-up that it is to spare.
 */
export function createFailureLimit({
  points,
  durationSeconds,
}: {
  readonly points: number;
  readonly durationSeconds: number;
}): FailureLimit {
  const limiter = new RateLimiterMemory({ points, duration: durationSeconds });
  return {
    async requireRoom(address) {
      const used = await limiter.get(networkOf(address));
      if (used === null || used.consumedPoints < points) return;
      throw new ApiError('too_many_requests', undefined, {
        headers: { 'retry-after': String(Math.max(1, Math.ceil(used.msBeforeNext / 1000))) },
      });
    },
    async count(address) {
      await limiter.consume(networkOf(address)).catch((refusal: unknown) => {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
      });
    },
  };
}
