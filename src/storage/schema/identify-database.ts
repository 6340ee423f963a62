import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';

/** What changes when a database is restored, copied or promoted. */
export interface IdentifiedDatabase {
  readonly cluster: string;
  readonly timeline: number;
  /** Whether the cluster was recovered to a point in time, which is kept in its settings. */
  readonly hasTarget: boolean;
  /** Another text after each start of the database server, as when a copy of the disk was put back. */
  readonly startedAt: string;
}

/**
 * Identifies a PostgreSQL database. A dump that is loaded creates the table again, another cluster has another identifier,
 * and a recovery or a promotion begins a timeline. A copy of the disk has all three in common with the original.
 *
 * NOTE: the timeline is that of the log being written: `pg_control_checkpoint` still has the old one for some time after
 * a promotion.
 */
export async function identifyDatabase(em: SqlEntityManager): Promise<IdentifiedDatabase> {
  const { rows } = await sql<{ cluster: string; timeline: number; has_target: boolean; started_at: string }>`
    select (select system_identifier from pg_control_system()) || '/' ||
        (select oid from pg_database where datname = current_database()) || '/' ||
        'database_identity'::regclass::oid as cluster,
      ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int as timeline,
      exists (select 1 from pg_settings where setting <> '' and name in
        ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time', 'recovery_target_xid')
      ) as has_target,
      pg_postmaster_start_time()::text as started_at
  `.execute(em.getKysely());
  const [{ cluster, timeline, has_target: hasTarget, started_at: startedAt }] = rows as [
    (typeof rows)[number],
  ];
  return { cluster, timeline, hasTarget, startedAt };
}
