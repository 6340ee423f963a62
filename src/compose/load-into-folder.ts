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
 * A snapshot replaces two databases and the master key, which no transaction covers. The whole snapshot is therefore
 * first written next to them, and removed once they are replaced. A sandbox that was killed in between repeats this
 * when it starts.
 */

/**
 * Moves the file of a snapshot to where a sandbox that starts finds it.
 *
 * @param file in the folder or below it.
 * @param isOwn whether it has the master key of the folder. If not, it contains the only copy of the key of what it
 * replaces, so it is synced to disk.
 */
export function beginLoading(folder: string, file: string, isOwn: boolean): void {
  if (!isOwn) sync(file);
  renameSync(file, loadingOf(folder));
  if (!isOwn) sync(folder);
}

/** The same for a snapshot that is in no file of the folder, and has another master key. */
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

/** Call it when everything is replaced. */
export function endLoading(folder: string): void {
  rmSync(loadingOf(folder), { force: true });
}

/** Loads what a sandbox was loading when it was killed. */
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

/** The part of a snapshot that belongs to the state that is kept between starts. */
export function keptBy({ state }: Snapshot): Pick<SandboxState, 'appId' | 'appSecret' | 'masterKeyHex'> {
  const { appId, appSecret, masterKeyHex } = state;
  return { appId, appSecret, masterKeyHex };
}

/** Undefined also for one that was being written, before which nothing was replaced. */
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
