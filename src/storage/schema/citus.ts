import type { AskDatabase } from './identify-database.ts';

// Citus places the tables of a distributed schema on one node of a cluster, the owner. Servers connect to the
// coordinator, which passes their statements on to the owner. Advisory locks and sequences are those of the
// coordinator.

/** The node that has the rows of a distributed schema. */
export interface OwnerNode {
  /** The number of the node in the cluster. A node that replaces another one keeps it. The coordinator has 0. */
  readonly group: number;
  /** PostgreSQL's identifier of the node. */
  readonly system: string;
  readonly timeline: number;
  readonly has_target: boolean;
  readonly started_at: string;
  /** The `lock_timeout` of sessions on the node, as PostgreSQL prints it. */
  readonly lock_timeout: string;
}

const GROUP = `
select placement.groupid as group
from pg_dist_partition table_ join pg_dist_shard shard using (logicalrelid) join pg_dist_placement placement using (shardid)
where table_.logicalrelid = to_regclass('database_identity')`;

// Reads a table of the schema, so that Citus runs the whole statement on the owner.
const OWNER = `
select (select system_identifier from pg_control_system())::text as system,
  ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int as timeline,
  current_setting('recovery_target') || current_setting('recovery_target_lsn') || current_setting('recovery_target_name')
    || current_setting('recovery_target_time') || current_setting('recovery_target_xid') <> '' as has_target,
  pg_postmaster_start_time()::text as started_at,
  current_setting('lock_timeout') as lock_timeout
from (select count(*) from database_identity) as here`;

/**
 * How many times to look for the owner if the schema moves in between. The last step of a move takes less time than a
 * statement, so a second attempt usually succeeds.
 */
const ATTEMPTS = 3;

export async function hasCitus(ask: AskDatabase): Promise<boolean> {
  return (await ask("select 1 as has from pg_extension where extname = 'citus'")).length > 0;
}

/**
 * Finds the node that has the tables of this schema.
 *
 * @returns undefined for a schema that is not distributed.
 */
export async function findOwner(ask: AskDatabase): Promise<OwnerNode | undefined> {
  const groupOf = async () => (await ask<{ group: number }>(GROUP))[0]?.group;
  let group = await groupOf();
  for (let attempt = 0; attempt < ATTEMPTS && group !== undefined; attempt += 1) {
    const [owner] = await ask<Omit<OwnerNode, 'group'>>(OWNER);
    const after = await groupOf();
    // If the groups differ, the schema was moved between the statements.
    if (after === group) return { group, ...owner! };
    group = after;
  }
  if (group === undefined) return undefined;
  throw new Error('the schema is being moved to another node');
}

/** Why servers must not use a database, and what to do instead. */
export interface ClusterFault {
  readonly text: string;
  readonly advice: string;
}

/**
 * Returns why servers must not use a database of a Citus cluster; undefined if they can, or if the database is not part
 * of a cluster.
 */
export async function findClusterFault(ask: AskDatabase): Promise<ClusterFault | undefined> {
  if (!(await hasCitus(ask))) return undefined;
  const [found] = await ask<{ group: number; tables: number; by_column: string | null }>(`
    select (select groupid from pg_dist_local_group) as group, count(*)::int as tables,
      string_agg(relname, ', ' order by relname) filter (where partmethod <> 'n' or repmodel = 't') as by_column
    from pg_dist_partition join pg_class on pg_class.oid = logicalrelid
    where relnamespace = quote_ident(current_schema())::regnamespace`);
  const { group, tables, by_column: byColumn } = found!;
  if (byColumn !== null)
    return {
      text: `Citus has distributed single tables (${byColumn}), which locks and sequences then do not protect`,
      advice: 'distribute whole schemas only, with `custos cells add --distribute`',
    };
  if (group === 0 || tables === 0) return undefined;
  return {
    text: 'it is a worker of a Citus cluster, whose locks and sequences are not those of the coordinator: limits would be exceeded and events lost',
    advice: 'name the coordinator in the database URL of all servers',
  };
}
