import { ApiError } from '../../errors.ts';
import type { RequestLog } from './request-log.ts';

/**
 * The log of requests.
 *
 * @throws ApiError invalid_state if the sandbox records none.
 */
export function requireLog(requests: RequestLog | undefined): RequestLog {
  if (requests !== undefined) return requests;
  throw new ApiError('invalid_state', 'this sandbox records no requests; start it without `--record off`');
}
