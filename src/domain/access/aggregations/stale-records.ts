import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Tables } from '../../tables.ts';

// HOT: deletes up to a limit (bench `policy`), which the entity manager cannot.

const MS_PER_SECOND = 1000;

/**
 * Deletes up to `limit` records that are older than their aggregation's window, and returns how many. The window of
 * an aggregation never changes.
 */
export async function dropStaleRecords(em: SqlEntityManager, nowMs: number, limit: number): Promise<number> {
  const database = em.getKysely<Tables>();
  const aggregations = await database.selectFrom('aggregations').select(['id', 'window_seconds']).execute();
  let dropped = 0;
  for (const { id, window_seconds: windowSeconds } of aggregations) {
    const { numDeletedRows } = await database
      .deleteFrom('aggregation_records')
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('aggregation_records')
          .select('id')
          .where('aggregation_id', '=', id)
          .where('recorded_at_ms', '<=', nowMs - windowSeconds * MS_PER_SECOND)
          .limit(limit - dropped),
      )
      .executeTakeFirst();
    dropped += Number(numDeletedRows);
    if (dropped >= limit) break;
  }
  return dropped;
}
