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
import type { KeyStore } from '../../../ports/key-store.ts';
import type { WrittenRecord } from '../../../ports/operation-context.ts';
import { lockName, tryLockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { AuditCheckpointEntity } from './audit.entity.ts';
import { getVerifier, signNote } from './audit-keys.ts';

// HOT: handles every record (bench `audit`). One Kysely statement moves records without reading them twice.

/** The maximum number of records that one transaction places. */
export const SEQUENCED_AT_ONCE = 1000;

const LOCK = 'audit log';

/**
 * Places the pending records into the log in one transaction: it stores their order, the hashes of their leaves and
 * the root.
 *
 * INVARIANT: only one process does this at a time, because each run begins where the previous one ended.
 *
 * @returns the number of placed records; undefined if another process is placing records.
 */
export async function sequenceRecords(em: SqlEntityManager, nowMs: number): Promise<number | undefined> {
  if (!(await hasPending(em))) return 0;
  if (!(await tryLockName(em, 'audit log', LOCK))) return undefined;
  return placeRecords(em, nowMs);
}

/** Places all records that are pending now. If another process is placing records, it waits for that process. */
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

/** Returns the number of records that have a place in the log. */
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

/** Moves the oldest pending records to the end of the log. Returns their entries in order. */
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

/** Reads the entries of consecutive records, starting at index `first`. */
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

/** Returns a function that reads stored tiles. For a missing tile, it returns no hashes. */
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
 * Finds out whether a database has lost changes. Every change has a record. A record leaves the database only by a
 * trim, which deletes the oldest records and keeps the tiles. There are two proofs of a loss. Neither depends on time,
 * on traffic, or on when a process last looked:
 * - a committed record is neither pending nor in the log, and no trim can have deleted it;
 * - the log does not begin with the records that a process has seen.
 *
 * KYSELY: statements over records with and without a place in the log.
 */

/** The log as a process saw it at some time. */
export interface SeenLog {
  readonly size: number;
  /** The hash at the root of the Merkle tree, base64. */
  readonly root: string;
}

/** A change that the caller knows to be committed. */
export interface AcknowledgedChange extends WrittenRecord {
  /** A size of the log before the change. The record of the change cannot have a lower index. */
  readonly logSize: number;
}

/** Reads the size and the root of the current log; undefined if it has no records. */
export async function readLog(em: SqlEntityManager): Promise<SeenLog | undefined> {
  const [newest] = await em.find(
    AuditCheckpointEntity,
    {},
    { orderBy: { size: 'desc' }, limit: 1, disableIdentityMap: true },
  );
  return newest && { size: newest.size, root: newest.root };
}

/**
 * Reads the size and the root of the log from a signed checkpoint. Returns undefined unless the checkpoint was signed
 * with the key of the log in the database.
 */
export async function openSeenLog(em: SqlEntityManager, note: string): Promise<SeenLog | undefined> {
  const verifier = await getVerifier(em);
  const checkpoint = verifier && openCheckpoint(note, verifier);
  return checkpoint && { size: checkpoint.size, root: Buffer.from(checkpoint.root).toString('base64') };
}

/** Returns whether the current log begins with the log that was seen. */
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
 * Compares the current log with the log that was seen:
 * - `continued`: the current log begins with it.
 * - `pending`: the current log is shorter, but enough records wait to be placed. A failover that loses only the places
 *   of records has this effect; the sequencer places them again within a second.
 * - `lost`: records are missing or differ.
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

/** Counts the changes that the database has certainly lost. */
export async function countLost(
  em: SqlEntityManager,
  changes: readonly AcknowledgedChange[],
): Promise<number> {
  if (changes.length === 0) return 0;
  // A record below the first kept record may have been trimmed, so it does not count as lost.
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

/** Returns the ids of those changes whose records are in the log at an index of at least `from`. */
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
  readonly keyStore: KeyStore;
  /** Reads outside any transaction. */
  readonly em: SqlEntityManager;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** Thrown when the log in the database does not begin with the log that this process has seen. */
class RewrittenLogError extends Error {
  constructor({ size }: SeenLog) {
    super(
      `the first ${size} records of the audit log were changed in the database; its checkpoint is not signed`,
    );
    this.name = 'RewrittenLogError';
  }
}

/**
 * Signs the newest checkpoint unless it is already signed. Call it outside transactions, because another process may
 * keep the key. Two processes that sign at the same time write the same note, because Ed25519 is deterministic.
 *
 * @param seen the log that this process has seen. A log that does not continue it is not signed. This keeps someone who
 * rewrites the tables of a running server from getting a valid log.
 * @returns the newest checkpoint, which may have been signed before; undefined if there is none.
 * @throws RewrittenLogError if the database lacks or has changed records that this process has seen.
 */
export async function signCheckpoint(
  { keyStore, em, inUnit }: SigningContext,
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
  const note = await signNote({ em, keyStore }, (origin) =>
    checkpointText({ origin, size, root: Buffer.from(root, 'base64') }),
  );
  await inUnit((unit) => unit.nativeUpdate(AuditCheckpointEntity, { size }, { note }));
  return { size, root };
}

/** Returns the newest signed checkpoint as a note; undefined if no checkpoint was signed. */
export async function getSignedCheckpoint(em: SqlEntityManager): Promise<string | undefined> {
  const [newest] = await em.find(
    AuditCheckpointEntity,
    { note: { $ne: null } },
    { orderBy: { size: 'desc' }, limit: 1 },
  );
  return newest?.note ?? undefined;
}

/** CHOICE: checkpoints are kept for a week. Tiles prove that an older checkpoint is consistent with a newer one. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

/** Deletes checkpoints older than a week, except the newest checkpoint, and returns how many. */
export async function dropOldCheckpoints(em: SqlEntityManager, nowMs: number): Promise<number> {
  const [newest] = await em.find(AuditCheckpointEntity, {}, { orderBy: { size: 'desc' }, limit: 1 });
  if (newest === undefined) return 0;
  return em.nativeDelete(AuditCheckpointEntity, {
    size: { $lt: newest.size },
    createdAtMs: { $lt: nowMs - KEPT_MS },
  });
}
