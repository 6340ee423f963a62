import type { SqlEntityManager } from '@mikro-orm/sql';
import { type RawBuilder, sql } from 'kysely';
import { openCheckpoint } from '../../../crypto/tlog/checkpoint.ts';
import { rootOf } from '../../../crypto/tlog/merkle-tree.ts';
import { MissingHashesError, subtreesOf } from '../../../crypto/tlog/tiles.ts';
import { AuditCheckpointEntity } from './audit-checkpoint.entity.ts';
import { getVerifier } from './audit-keys.ts';
import { tileReader } from './sequence-records.ts';
import type { WrittenRecord } from './write-record.ts';

/*
 * Evidence that a database has lost changes. Every change has a record, and a record leaves the database only by a trim,
 * which deletes the oldest ones and keeps the tiles. So there are two proofs, and neither depends on time, on traffic or
 * on how long ago a process last looked:
 *
 * - a record that was committed is neither pending nor in the log, and no trim can have deleted it,
 * - the log does not begin with what a process has seen of it.
 *
 * HOT: Kysely, not for measured speed: statements over records with and without a place in the log.
 */

/** The log as a process has seen it. */
export interface SeenLog {
  readonly size: number;
  /** Base64. */
  readonly root: string;
}

/** A change that the caller knows to be committed. */
export interface AcknowledgedChange extends WrittenRecord {
  /** A size that the log had before the change. Its record cannot have a lower index. */
  readonly logSize: number;
}

/** The log as it is now; undefined without records. */
export async function readLog(em: SqlEntityManager): Promise<SeenLog | undefined> {
  const [newest] = await em.find(
    AuditCheckpointEntity,
    {},
    { orderBy: { size: 'desc' }, limit: 1, disableIdentityMap: true },
  );
  return newest && { size: newest.size, root: newest.root };
}

/** The log of a signed checkpoint; undefined if the key of the log in the database has not signed it. */
export async function openSeenLog(em: SqlEntityManager, note: string): Promise<SeenLog | undefined> {
  const verifier = await getVerifier(em);
  const checkpoint = verifier && openCheckpoint(note, verifier);
  return checkpoint && { size: checkpoint.size, root: Buffer.from(checkpoint.root).toString('base64') };
}

/** Whether the log, as it is now, begins with what was seen of it. */
export async function continuesLog(
  em: SqlEntityManager,
  seen: SeenLog,
  now: SeenLog | undefined,
): Promise<boolean> {
  if (now === undefined || now.size < seen.size) return false;
  if (now.size === seen.size) return now.root === seen.root;
  try {
    const root = await rootOf(subtreesOf(tileReader(em)), seen.size);
    return Buffer.from(root).toString('base64') === seen.root;
  } catch (error) {
    if (error instanceof MissingHashesError) return false;
    throw error;
  }
}

/**
 * How the log relates to what was seen of it. `pending`: it is shorter, but as many records wait for a place in it, as
 * after a failover that lost only their places. The sequencer places them again within a second.
 */
export async function compareLog(
  em: SqlEntityManager,
  seen: SeenLog,
  now: SeenLog | undefined,
): Promise<'continued' | 'pending' | 'lost'> {
  const missing = seen.size - (now?.size ?? 0);
  if (missing <= 0) return (await continuesLog(em, seen, now)) ? 'continued' : 'lost';
  const { rows } = await sql<{ missing: number }>`
    select ${seen.size} - coalesce((select max(size) from audit_checkpoints), 0)
      - (select count(*) from (select 1 from audit_pending limit ${missing}) waiting) as missing
  `.execute(em.getKysely());
  return Number(rows[0]!.missing) <= 0 ? 'pending' : 'lost';
}

/** How many of these changes the database has lost for certain. */
export async function countLost(
  em: SqlEntityManager,
  changes: readonly AcknowledgedChange[],
): Promise<number> {
  if (changes.length === 0) return 0;
  // What is below the first record may have been trimmed.
  const { rows } = await sql<{ lost: number }>`
    with wanted (id, at_ms, log_size) as (values ${rowsOf(changes)})
    select count(*) as lost from wanted where log_size >= coalesce(
      (select min(leaf_index) from audit_records), (select max(size) from audit_checkpoints), 0
    ) and not exists (
      select 1 from audit_pending where id = wanted.id and recorded_at_ms = wanted.at_ms
    ) and not exists (
      select 1 from audit_records where pending_id = wanted.id and recorded_at_ms = wanted.at_ms
    )
  `.execute(em.getKysely());
  return Number(rows[0]!.lost);
}

/** The ids of those of these changes whose records have a place in the log, from an index on. */
export async function findPlaced(
  em: SqlEntityManager,
  changes: readonly AcknowledgedChange[],
  from: number,
): Promise<ReadonlySet<number>> {
  if (changes.length === 0) return new Set();
  const { rows } = await sql<{ id: number | string }>`
    with wanted (id, at_ms, log_size) as (values ${rowsOf(changes)})
    select wanted.id from wanted join audit_records on pending_id = wanted.id and recorded_at_ms = wanted.at_ms
    where leaf_index >= ${from}
  `.execute(em.getKysely());
  return new Set(rows.map(({ id }) => Number(id)));
}

function rowsOf(changes: readonly AcknowledgedChange[]): RawBuilder<unknown> {
  return sql.join(
    changes.map(
      ({ pendingId, recordedAtMs, logSize }) =>
        sql`(cast(${pendingId} as bigint), cast(${recordedAtMs} as bigint), cast(${logSize} as bigint))`,
    ),
  );
}
