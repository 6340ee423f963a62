import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { Tables } from '../../tables.ts';
import { moveIntent } from './intent-state.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

/** Intents expired in one transaction. */
export const EXPIRED_AT_ONCE = 200;

/**
 * Stores the expiry of pending intents, at most `EXPIRED_AT_ONCE` of them. Reads already report them as expired; this
 * keeps filtering by status correct.
 *
 * Result: how many.
 */
export async function expireIntents(em: SqlEntityManager, nowMs: number): Promise<number> {
  // A locked intent is being decided by its lock holder, so it is skipped.
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select('id')
    // The status is a literal, not a parameter, so that its partial index is used.
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
