import { systemClock } from '../adapters/clock.ts';
import type { DatabaseConfig } from '../config.ts';
import { type Replay, type ReplayInput, replayPolicy } from '../domain/requests/policy-desk/replay-policy.ts';
import { requestValidators } from '../generated/request-validators.js';
import { createBodyCheck } from '../http/body-check.ts';
import { requireMigrated, withDatabase } from './administration.ts';

/**
 * Judges the recorded requests of a wallet by a draft, without a server: asks the database itself.
 *
 * @throws StartError when the database is not ready for this version; ApiError for input that is refused.
 */
export function replayInDatabase(config: DatabaseConfig, input: ReplayInput): Promise<Replay> {
  const checkRequest = createBodyCheck(requestValidators);
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    return replayPolicy({ em: database.orm.em.fork(), nowMs: systemClock.now(), checkRequest }, input);
  });
}
