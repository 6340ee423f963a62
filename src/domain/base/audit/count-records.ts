import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { WrittenRecord } from './write-record.ts';

// HOT: Kysely, not for measured speed: one statement over records with and without a place in the log.

/** Records that were written a moment ago are among this many of the newest of the log. */
const NEWEST = 50_000;

/** How many of these records, written a moment ago, the database has. */
export async function countRecords(em: SqlEntityManager, records: readonly WrittenRecord[]): Promise<number> {
  if (records.length === 0) return 0;
  const wanted = sql.join(
    records.map(
      ({ pendingId, recordedAtMs }) => sql`(cast(${pendingId} as bigint), cast(${recordedAtMs} as bigint))`,
    ),
  );
  const { rows } = await sql<{ found: number }>`
    with wanted (id, at_ms) as (values ${wanted})
    select count(distinct wanted.id) as found from wanted where exists (
      select 1 from audit_pending where id = wanted.id and recorded_at_ms = wanted.at_ms
    ) or exists (
      select 1 from audit_records
      where leaf_index > (select max(leaf_index) from audit_records) - ${sql.lit(NEWEST)}
        and pending_id = wanted.id and recorded_at_ms = wanted.at_ms
    )
  `.execute(em.getKysely());
  return Number(rows[0]?.found ?? 0);
}
