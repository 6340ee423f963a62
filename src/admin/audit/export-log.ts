import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { DatabaseConfig } from '../../config/config.ts';
import { makeFolder } from '../../config/make-folder.ts';
import { StartError } from '../../config/start-error.ts';
import { getVerifier } from '../../domain/base/audit/audit-keys.ts';
import { getSignedCheckpoint, readEntries, tileReader } from '../../domain/base/audit/audit-tree.ts';
import { type Checkpoint, openCheckpoint, writeVerifierKey } from '../../engine/crypto/tlog/checkpoint.ts';
import { leafHash, rootOf } from '../../engine/crypto/tlog/merkle-tree.ts';
import {
  HASH_BYTES,
  hashesOf,
  type ReadTile,
  subtreesOf,
  TILE_WIDTH,
  tilePath,
  tilesAt,
  writeBundle,
} from '../../engine/crypto/tlog/tiles.ts';
import { requireMigrated, withDatabase } from '../administration.ts';
import { files, readFileOf, widthOf } from './log-folder.ts';

/** The log in the folder after an export. */
export interface Exported {
  readonly size: number;
  /** The number of records that the folder had before. */
  readonly from: number;
  readonly root: string;
  /** The key that verifies the log. Readers should receive it over a different channel than the files. */
  readonly verifier_key: string;
}

/**
 * Exports the log as files in the layout of C2SP tlog-tiles, or adds new records to the folder. The checkpoint is
 * written last, so after an interrupted export, the folder contains the log of the previous export.
 *
 * @throws StartError when there is nothing to export, or when the log in the database does not continue the log in
 * the folder, because one of them was changed.
 */
export function exportLog(config: DatabaseConfig, folder: string): Promise<Exported> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    return exportFrom(database.orm.em.fork(), folder);
  });
}

/** Works like `exportLog`, on an open database. */
export async function exportFrom(em: SqlEntityManager, folder: string): Promise<Exported> {
  const verifier = await getVerifier(em);
  const note = await getSignedCheckpoint(em);
  if (verifier === undefined || note === undefined)
    throw new StartError('the audit log has no checkpoint yet');
  const checkpoint = openCheckpoint(note, verifier);
  if (checkpoint === undefined) {
    throw new StartError(
      'the newest checkpoint in the database has no valid signature by the key of the log',
    );
  }
  const { size } = checkpoint;
  const readTile = tileReader(em);
  const before = readFileOf(folder, files.checkpoint)?.toString('utf8');
  const known = before === undefined ? undefined : openCheckpoint(before, verifier);
  const from = before === undefined ? 0 : await requireContinued(readTile, checkpoint, known);
  await writeTiles(folder, readTile, { from, size });
  await writeBundles(em, folder, { from, size, readTile });
  const key = writeVerifierKey(verifier);
  write(folder, files.verifier, `${key}\n`);
  write(folder, files.checkpoint, note);
  dropPartials(folder, { from, size });
  const root = Buffer.from(checkpoint.root).toString('base64');
  return { size, from, root, verifier_key: key };
}

/**
 * Requires that the log in the database continues the log in the folder, which is a witness: the database must still
 * have the same first records. Returns their number.
 */
async function requireContinued(
  readTile: ReadTile,
  checkpoint: Checkpoint,
  before: Checkpoint | undefined,
): Promise<number> {
  if (before === undefined)
    throw new StartError('the folder has a checkpoint of a different log; export to a new folder');
  if (before.size > checkpoint.size) {
    throw new StartError(
      `the folder has ${before.size} records, the database only ${checkpoint.size}: the log was truncated`,
    );
  }
  // `root` is undefined if tiles are missing from the database.
  const root = await rootOf(subtreesOf(readTile), before.size).catch(() => undefined);
  if (root !== undefined && Buffer.compare(root, before.root) === 0) return before.size;
  throw new StartError(
    `the first ${before.size} records in the database are not those of the folder: one was changed`,
  );
}

interface Growth {
  readonly from: number;
  readonly size: number;
}

async function writeTiles(folder: string, readTile: ReadTile, { from, size }: Growth): Promise<void> {
  for (let level = 0; ; level += 1) {
    const { full, partial } = tilesAt(level, size);
    const count = full + (partial > 0 ? 1 : 0);
    if (count === 0) return;
    for (let index = tilesAt(level, from).full; index < count; index += 1) {
      const width = widthOf(level, index, size);
      const hashes = (await readTile(level, index)).subarray(0, width * HASH_BYTES);
      writeTile(folder, { level, index, width }, hashes);
    }
  }
}

/**
 * Writes only records that match the tree, so that a record that was changed in the database never replaces an
 * exported record.
 */
async function writeBundles(
  em: SqlEntityManager,
  folder: string,
  { from, size, readTile }: Growth & { readonly readTile: ReadTile },
): Promise<void> {
  for (let index = tilesAt(0, from).full; index * TILE_WIDTH < size; index += 1) {
    const width = widthOf(0, index, size);
    const first = index * TILE_WIDTH;
    const entries = (await readEntries(em, first, width)).map((entry) => Buffer.from(entry));
    if (entries.length < width) {
      throw new StartError(
        `the database has ${entries.length} of the records ${first} to ${first + width - 1}: export to the folder of the export before they were trimmed, or restore them`,
      );
    }
    const hashes = hashesOf(await readTile(0, index));
    const changed = entries.findIndex((entry, at) => !leafHash(entry).equals(hashes[at] ?? Buffer.alloc(0)));
    if (changed !== -1)
      throw new StartError(`record ${first + changed} in the database is not the one that was logged`);
    writeTile(folder, { level: 'entries', index, width }, writeBundle(entries));
  }
}

interface Place {
  readonly level: number | 'entries';
  readonly index: number;
  readonly width: number;
}

function writeTile(folder: string, { level, index, width }: Place, content: Uint8Array): void {
  write(folder, tilePath(level, index, width), content);
}

/** Deletes the partial tiles and bundles of the previous export, which wider ones have replaced. */
function dropPartials(folder: string, { from, size }: Growth): void {
  const drop = (name: number | 'entries', level: number): void => {
    const { full: index, partial } = tilesAt(level, from);
    const width = widthOf(level, index, size);
    if (partial === 0 || partial === width) return;
    rmSync(join(folder, tilePath(name, index, partial)), { force: true });
    if (width === TILE_WIDTH) rmSync(join(folder, `${tilePath(name, index, width)}.p`), { recursive: true });
  };
  drop('entries', 0);
  for (let level = 0; tilesAt(level, from).full + tilesAt(level, from).partial > 0; level += 1)
    drop(level, level);
}

function write(folder: string, name: string, content: string | Uint8Array): void {
  const path = join(folder, name);
  makeFolder(dirname(path));
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}
