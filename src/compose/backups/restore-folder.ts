import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { systemEntropy } from '../../adapters/entropy.ts';
import {
  chainsOf,
  databaseOf,
  generateEventLogId,
  lockOf,
  readSandboxState,
  writeSandboxState,
} from '../../adapters/sandbox-folder.ts';
import { markRestored } from '../../admin/restores/restored.ts';
import { StartError } from '../../start-error.ts';
import { damageOf } from '../../storage/images/images-at-once.ts';
import { lockFile } from '../../storage/lock-file.ts';
import { readSchemaVersion } from '../../storage/open-database.ts';
import { type BackupManifest, readBackup, writeFiles } from './backup-manifest.ts';

/** What became of the folder. */
export interface RestoredFolder {
  readonly manifest: BackupManifest;
  /** Where the earlier content is; undefined if there was none. */
  readonly replaced: string | undefined;
}

/**
 * Makes the data folder of a sandbox from a backup. Everything is checked before anything is replaced, and what is
 * replaced is kept beside it: it may contain the only copy of a master key.
 *
 * @throws StartError
 */
export async function restoreFolder(
  backup: string,
  folder: string,
  { replaces }: { readonly replaces: boolean },
): Promise<RestoredFolder> {
  const { manifest, files } = readBackup(backup);
  const isUsed = existsSync(folder) && readdirSync(folder).length > 0;
  if (isUsed && !replaces) {
    throw new StartError(`\`${folder}\` is not empty; choose another folder, or replace it with --replace`);
  }
  const temporary = `${folder}.${process.pid}`;
  try {
    writeFiles(temporary, files);
    await checkRestored(temporary, backup);
    await markRestored({ kind: 'folder', folder: temporary });
    // Cursors of events that were lost must not lead to others.
    writeSandboxState(temporary, {
      ...readSandboxState(temporary)!,
      eventLog: generateEventLogId(systemEntropy),
    });
    const replaced = isUsed ? putAside(folder) : undefined;
    if (!isUsed) rmSync(folder, { recursive: true, force: true });
    renameSync(temporary, folder);
    return { manifest, replaced };
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
}

/** @throws StartError for a backup that this version cannot use. */
async function checkRestored(folder: string, backup: string): Promise<void> {
  if (readSandboxState(folder) === undefined || !existsSync(databaseOf(folder))) {
    throw new StartError(`\`${backup}\` lacks the state or the database of a sandbox; use another backup`);
  }
  for (const file of [databaseOf(folder), chainsOf(folder)].filter(existsSync)) {
    const damage = damageOf(file);
    if (damage !== undefined) throw new StartError(`a database in \`${backup}\` is damaged: ${damage}`);
  }
  const { version, newest } = await readSchemaVersion(databaseOf(folder));
  if (version > newest) {
    throw new StartError(
      `\`${backup}\` is at version ${version} of the schema, expected at most ${newest}; run a newer version`,
    );
  }
}

/** Moves the folder, unless a sandbox uses it. */
function putAside(folder: string): string {
  const lock = lockFile(lockOf(folder));
  if ('heldBy' in lock) {
    throw new StartError(`a sandbox (process ${lock.heldBy}) uses \`${folder}\`; stop it first`);
  }
  try {
    for (let number = 1; ; number += 1) {
      const aside = `${folder}.replaced-${number}`;
      if (existsSync(aside)) continue;
      renameSync(folder, aside);
      return aside;
    }
  } finally {
    lock.release();
  }
}
