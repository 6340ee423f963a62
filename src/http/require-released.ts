import { ApiError } from '../errors.ts';
import type { ChangeHold } from '../ports/restores/change-hold.ts';
import { type HttpExchange, operationOf } from './http-exchange.ts';

/** After a failover, a server is certain within a second. */
const RETRY_SECONDS = '1';

/** Refuses changes while a restored database holds them. @throws ApiError unavailable */
export async function requireReleased(exchange: HttpExchange, hold: ChangeHold): Promise<void> {
  if (operationOf(exchange).method === 'GET') return;
  const reason = await hold.settled();
  if (reason !== undefined)
    throw new ApiError('unavailable', reason, { headers: { 'retry-after': RETRY_SECONDS } });
}
