import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the files and databases of a run take at once is below 2 GB. */
const MAX_BYTES = 4 * 1024 ** 3;

/**
 * A file system in memory that is large enough, or the temporary folder, as in a container by default. A disk makes every
 * commit wait; a copied database of PostgreSQL is 700 files, which take two to ten times as long there.
 */
export function folderInMemory(): string {
  const folder = '/dev/shm';
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= MAX_BYTES ? folder : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** A vitest global setup: temporary files of the run are in a folder of its own, in memory if possible, deleted at its end. */
export function setup(): () => void {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(join(folderInMemory(), 'custos-tests-'));
  // PostgreSQL runs as another user, who has folders in it.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  // A run that is interrupted does not come to its teardown.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  };
}
