import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { Tables } from '../../tables.ts';
import { moveIntent } from './intent-state.ts';

/** Intents that are expired in one transaction. */
export const EXPIRED_AT_ONCE = 200;

/**
 * Writes down that the time of pending intents is over, `EXPIRED_AT_ONCE` of them at most. They have long been told as
 * expired: this is for look-ups by status.
 *
 * Result: how many.
 */
export async function expireIntents(em: SqlEntityManager, nowMs: number): Promise<number> {
  // Whoever holds one decides it, or finds that it has expired.
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select('id')
    // The status is no value, so that its index is used.
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
