import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { systemEntropy } from '../adapters/runtime.ts';
import {
  chainsOf,
  databaseOf,
  generateEventLogId,
  loadingOf,
  readSandboxState,
  type SandboxState,
  writeSandboxState,
} from '../adapters/sandbox-folder.ts';
import { releaseAllTaken, snapshotsOf } from '../adapters/snapshot-folder.ts';
import { decodeSnapshot, InvalidSnapshotError, type Snapshot } from '../sandbox/snapshot-file.ts';
import { replaceContent } from '../storage/sqlite/images.ts';

/**
 * A snapshot replaces two databases and the master key, which no single transaction can do. So the whole snapshot is
 * first written next to them, and deleted once they are replaced. If the sandbox is killed in between, its next start
 * repeats the replacement.
 */

/**
 * Moves a snapshot's file to the path where the next start looks for it.
 *
 * @param file in the folder or below it.
 * @param isOwn whether the snapshot has the folder's master key. If not, the file is synced to disk, because it
 * contains the only copy of the key for the new databases.
 */
export function beginLoading(folder: string, file: string, isOwn: boolean): void {
  if (!isOwn) sync(file);
  renameSync(file, loadingOf(folder));
  if (!isOwn) sync(folder);
}

/**
 * Writes a snapshot to the path where the next start looks for it. Use it for a snapshot that is not a file in the
 * folder and has another master key.
 */
export function beginLoadingContent(folder: string, content: Buffer): void {
  const file = `${loadingOf(folder)}.${process.pid}`;
  writeFileSync(file, content, { mode: 0o600 });
  beginLoading(folder, file, false);
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Deletes the snapshot's file. Must be called once everything is replaced. */
export function endLoading(folder: string): void {
  rmSync(loadingOf(folder), { force: true });
}

/** Loads the snapshot that a killed sandbox had begun to load. */
export async function finishLoading(folder: string): Promise<void> {
  const snapshot = readLoading(folder);
  if (snapshot !== undefined) {
    await replaceContent(databaseOf(folder), snapshot.database);
    if (snapshot.chains === undefined) removeDatabase(chainsOf(folder));
    else await replaceContent(chainsOf(folder), snapshot.chains);
    const before = readSandboxState(folder);
    writeSandboxState(folder, {
      ...{ starts: 1, eventLogBeginsAfter: 0 },
      ...before,
      ...keptBy(snapshot),
      eventLog: generateEventLogId(systemEntropy),
    });
  }
  endLoading(folder);
  await releaseAllTaken(snapshotsOf(folder));
}

/** Returns the part of a snapshot that belongs to the state that is kept between starts. */
export function keptBy({ state }: Snapshot): Pick<SandboxState, 'appId' | 'appSecret' | 'masterKeyHex'> {
  const { appId, appSecret, masterKeyHex } = state;
  return { appId, appSecret, masterKeyHex };
}

/**
 * Reads the snapshot that is being loaded. Returns undefined if there is none, or if its file is incomplete, because
 * nothing is replaced before the file is complete.
 */
function readLoading(folder: string): Snapshot | undefined {
  try {
    return decodeSnapshot(readFileSync(loadingOf(folder)));
  } catch (error) {
    if (error instanceof InvalidSnapshotError) return undefined;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function removeDatabase(file: string): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true });
}
