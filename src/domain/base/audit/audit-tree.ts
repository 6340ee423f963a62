import type { SqlEntityManager } from '@mikro-orm/sql';
import { type RawBuilder, sql } from 'kysely';
import { checkpointText, openCheckpoint } from '../../../engine/crypto/tlog/checkpoint.ts';
import { leafHash, rootOf } from '../../../engine/crypto/tlog/merkle-tree.ts';
import {
  appendToTiles,
  type ExtendedTile,
  MissingHashesError,
  type ReadTile,
  subtreesOf,
} from '../../../engine/crypto/tlog/tiles.ts';
import type { KeyVault } from '../../../ports/key-vault.ts';
import type { WrittenRecord } from '../../../ports/unit-notes.ts';
import { lockName, tryLockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { AuditCheckpointEntity } from './audit.entity.ts';
import { getVerifier, signNote } from './audit-keys.ts';

// HOT: handles every record (bench `audit`). Kysely has one statement that moves them without reading them twice.

/** How many records one transaction places. */
export const SEQUENCED_AT_ONCE = 1000;

const LOCK = 'audit log';

/**
 * Places the pending records into the log, in one transaction: their order, the hashes of their leaves and the root.
 *
 * INVARIANT: one at a time, of all processes, because each begins where the one before has ended.
 *
 * Result: how many records were placed; undefined if another process is at it.
 */
export async function sequenceRecords(em: SqlEntityManager, nowMs: number): Promise<number | undefined> {
  if (!(await hasPending(em))) return 0;
  if (!(await tryLockName(em, 'audit log', LOCK))) return undefined;
  return placeRecords(em, nowMs);
}

/** Places all records that are pending now; waits for another process that is at it. */
export async function sequenceAll(em: SqlEntityManager, nowMs: number): Promise<void> {
  await lockName(em, 'audit log', LOCK);
  while ((await placeRecords(em, nowMs)) === SEQUENCED_AT_ONCE);
}

async function hasPending(em: SqlEntityManager): Promise<boolean> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('audit_pending')
    .select('id')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

async function placeRecords(em: SqlEntityManager, nowMs: number): Promise<number> {
  const size = await readLogSize(em);
  const entries = await movePending(em, size);
  if (entries.length === 0) return 0;
  const stored = tileReader(em);
  const leaves = entries.map((entry) => leafHash(Buffer.from(entry)));
  const tiles = await appendToTiles(stored, size, leaves);
  await storeTiles(em, tiles);
  const added = new Map(tiles.map(({ level, index, hashes }) => [`${level}/${index}`, hashes]));
  const readTile: ReadTile = async (level, index) => added.get(`${level}/${index}`) ?? stored(level, index);
  const newSize = size + entries.length;
  const root = Buffer.from(await rootOf(subtreesOf(readTile), newSize)).toString('base64');
  await em
    .getKysely<Tables>()
    .insertInto('audit_checkpoints')
    .values({ size: newSize, root, note: null, created_at_ms: nowMs })
    .execute();
  return entries.length;
}

/** How many records have a place in the log. */
async function readLogSize(em: SqlEntityManager): Promise<number> {
  const newest = await em
    .getKysely<Tables>()
    .selectFrom('audit_checkpoints')
    .select('size')
    .orderBy('size', 'desc')
    .limit(1)
    .executeTakeFirst();
  return Number(newest?.size ?? 0);
}

/** Moves the oldest pending records to the end of the log. Result: their entries, in order. */
async function movePending(em: SqlEntityManager, size: number): Promise<string[]> {
  const database = em.getKysely<Tables>();
  const { rows } = await sql<{ leaf_index: number | string; entry: string }>`
    insert into audit_records (leaf_index, pending_id, app_id, origin, recorded_at_ms, entry)
    select cast(${size} as bigint) + row_number() over (order by id) - 1, id, app_id, origin, recorded_at_ms, entry
    from (select * from audit_pending order by id limit ${SEQUENCED_AT_ONCE}) as oldest
    returning leaf_index, entry
  `.execute(database);
  if (rows.length === 0) return [];
  const moved = database.selectFrom('audit_records').select('pending_id').where('leaf_index', '>=', size);
  await database.deleteFrom('audit_pending').where('id', 'in', moved).execute();
  return rows
    .toSorted((one, other) => Number(one.leaf_index) - Number(other.leaf_index))
    .map(({ entry }) => entry);
}

/** The entries of records in a row, from the index `first`. */
export async function readEntries(em: SqlEntityManager, first: number, count: number): Promise<string[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('audit_records')
    .select('entry')
    .where('leaf_index', '>=', first)
    .where('leaf_index', '<', first + count)
    .orderBy('leaf_index')
    .execute();
  return rows.map(({ entry }) => entry);
}

/** Reads the stored tiles of the log; an absent one has no hashes. */
export function tileReader(em: SqlEntityManager): ReadTile {
  return async (level, index) => {
    const tile = await em
      .getKysely<Tables>()
      .selectFrom('audit_tiles')
      .select('hashes')
      .where('level', '=', level)
      .where('tile_index', '=', index)
      .executeTakeFirst();
    return tile?.hashes ?? Buffer.alloc(0);
  };
}

async function storeTiles(em: SqlEntityManager, tiles: readonly ExtendedTile[]): Promise<void> {
  await em
    .getKysely<Tables>()
    .insertInto('audit_tiles')
    .values(
      tiles.map(({ level, index, hashes }) => ({ level, tile_index: index, hashes: Buffer.from(hashes) })),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['level', 'tile_index'])
        .doUpdateSet(({ ref }) => ({ hashes: ref('excluded.hashes') })),
    )
    .execute();
}

/*
 * Evidence that a database has lost changes. Every change has a record, and a record leaves the database only by a
 * trim, which deletes the oldest records and keeps the tiles. There are two proofs. Neither depends on time, on
 * traffic, or on how long ago a process last looked:
 * - a committed record is neither pending nor in the log, and no trim can have deleted it;
 * - the log does not begin with the records that a process has seen.
 * KYSELY: statements over records with and without a place in the log.
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
  // Records below the first record may have been trimmed.
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

/** The ids of these changes whose records have a place in the log, from an index on. */
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

interface SigningContext {
  readonly vault: KeyVault;
  /** Reads outside any transaction. */
  readonly em: SqlEntityManager;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** The log in the database does not begin with what this process has seen of it. */
class RewrittenLogError extends Error {
  constructor({ size }: SeenLog) {
    super(
      `the first ${size} records of the audit log were changed in the database; its checkpoint is not signed`,
    );
    this.name = 'RewrittenLogError';
  }
}

/**
 * Signs the newest checkpoint unless it is signed. Between transactions: the key may be kept by another system. Two
 * processes that do it at the same time write the same note, because Ed25519 is deterministic.
 *
 * @param seen what this process has seen before: a log that does not continue it is not signed, so that rewriting the
 * tables of a running server does not give a valid log.
 * @returns the newest checkpoint, signed now or before; undefined without one.
 * @throws RewrittenLogError
 */
export async function signCheckpoint(
  { vault, em, inUnit }: SigningContext,
  seen?: SeenLog,
): Promise<SeenLog | undefined> {
  const [newest] = await em.find(AuditCheckpointEntity, {}, { orderBy: { size: 'desc' }, limit: 1 });
  if (newest === undefined) {
    if (seen !== undefined) throw new RewrittenLogError(seen);
    return undefined;
  }
  const { size, root } = newest;
  if (seen !== undefined && !(await continuesLog(em, seen, newest))) throw new RewrittenLogError(seen);
  if (newest.note !== null) return { size, root };
  const note = await signNote({ em, vault }, (origin) =>
    checkpointText({ origin, size, root: Buffer.from(root, 'base64') }),
  );
  await inUnit((unit) => unit.nativeUpdate(AuditCheckpointEntity, { size }, { note }));
  return { size, root };
}

/** The newest signed checkpoint, as a note. */
export async function getSignedCheckpoint(em: SqlEntityManager): Promise<string | undefined> {
  const [newest] = await em.find(
    AuditCheckpointEntity,
    { note: { $ne: null } },
    { orderBy: { size: 'desc' }, limit: 1 },
  );
  return newest?.note ?? undefined;
}

/** CHOICE: checkpoints are kept for a week. Any older one is proved against a newer one from the tiles. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

/** Deletes old checkpoints, except the newest; returns how many. */
export async function dropOldCheckpoints(em: SqlEntityManager, nowMs: number): Promise<number> {
  const [newest] = await em.find(AuditCheckpointEntity, {}, { orderBy: { size: 'desc' }, limit: 1 });
  if (newest === undefined) return 0;
  return em.nativeDelete(AuditCheckpointEntity, {
    size: { $lt: newest.size },
    createdAtMs: { $lt: nowMs - KEPT_MS },
  });
}
