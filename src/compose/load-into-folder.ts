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

/*
 * A snapshot replaces two databases and the master key, which no single transaction can do. The whole snapshot is
 * therefore first written next to them, and removed after they are replaced. If the sandbox is killed in between, its
 * next start repeats the replacement.
 */

/**
 * Moves the file of a snapshot to the path where the next start finds it.
 *
 * @param file in the folder or below it.
 * @param isOwn whether it has the master key of the folder. If not, it contains the only copy of the key of the
 * databases that replace the old ones, so it is synced to disk.
 */
export function beginLoading(folder: string, file: string, isOwn: boolean): void {
  if (!isOwn) sync(file);
  renameSync(file, loadingOf(folder));
  if (!isOwn) sync(folder);
}

/** Does the same for a snapshot that is not a file in the folder, and has another master key. */
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

/** Must be called when everything is replaced. */
export function endLoading(folder: string): void {
  rmSync(loadingOf(folder), { force: true });
}

/** Loads the snapshot that a killed sandbox was loading. */
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

/** Returns the part of a snapshot that belongs to the state which is kept between starts. */
export function keptBy({ state }: Snapshot): Pick<SandboxState, 'appId' | 'appSecret' | 'masterKeyHex'> {
  const { appId, appSecret, masterKeyHex } = state;
  return { appId, appSecret, masterKeyHex };
}

/**
 * Reads the snapshot that is being loaded. Also returns undefined for a file that was written only partly, because
 * nothing was replaced before it was complete.
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
