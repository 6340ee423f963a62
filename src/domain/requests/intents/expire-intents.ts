import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { Tables } from '../../tables.ts';
import { moveIntent } from './find-intent.ts';

// KYSELY: intents move from status to status by compare-and-set.

/** The number of intents that expire in one transaction. */
export const EXPIRED_AT_ONCE = 200;

/**
 * Stores the expiry of pending intents, at most `EXPIRED_AT_ONCE` of them, and returns how many. Views already report
 * them as expired; the stored status is needed to filter by status.
 */
export async function expireIntents(em: SqlEntityManager, nowMs: number): Promise<number> {
  // A locked intent is skipped, because the holder of the lock is deciding it.
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select('id')
    // The status is a literal instead of a parameter, so that the database uses its partial index.
    .where(sql<boolean>`status = 'pending'`)
    .where('expires_at_ms', '<', nowMs)
    .orderBy('expires_at_ms')
    .orderBy('id')
    .limit(EXPIRED_AT_ONCE)
    .forUpdate()
    .skipLocked()
    .execute();
  let expired = 0;
  for (const { id } of rows) {
    const outcome = { ended_at_ms: nowMs };
    if (await moveIntent({ em, nowMs }, id, { from: 'pending', to: 'expired', outcome })) expired += 1;
  }
  return expired;
}
