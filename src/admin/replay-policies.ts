import { systemClock } from '../adapters/clock.ts';
import type { DatabaseConfig } from '../config.ts';
import { type Replay, type ReplayInput, replayPolicy } from '../domain/requests/policy-desk/replay-policy.ts';
import { requestValidators } from '../generated/request-validators.js';
import { createBodyCheck } from '../http/body-check.ts';
import { requireMigrated, withDatabase } from './administration.ts';

/**
 * Evaluates a wallet's recorded requests under a draft policy, directly on the database without a server.
 *
 * @throws StartError when the database lacks migrations of this version; ApiError for invalid input.
 */
export function replayInDatabase(config: DatabaseConfig, input: ReplayInput): Promise<Replay> {
  const checkRequest = createBodyCheck(requestValidators);
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    return replayPolicy({ em: database.orm.em.fork(), nowMs: systemClock.now(), checkRequest }, input);
  });
}
