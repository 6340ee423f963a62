import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { leafHash, rootOf } from '../../../crypto/tlog/merkle-tree.ts';
import { appendToTiles, type ExtendedTile, type ReadTile, subtreesOf } from '../../../crypto/tlog/tiles.ts';
import { lockName, tryLockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';

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
