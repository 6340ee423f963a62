import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemClock } from '../../adapters/clock.ts';
import { chainsOf, databaseOf, loadingOf, lockOf, readSandboxState } from '../../adapters/sandbox-folder.ts';
import { packageVersion } from '../../package-root.ts';
import { StartError } from '../../start-error.ts';
import { imagesAtOnce } from '../../storage/images/images-at-once.ts';
import { readSchemaVersion } from '../../storage/open-database.ts';
import { type BackupManifest, manifestFile, manifestOf, writeFiles } from './backup-manifest.ts';

/**
 * Writes a backup of a sandbox's folder into a new folder: both databases as of one moment, the master key, the
 * certificates and the snapshots. The sandbox may be running.
 *
 * @throws StartError
 */
export async function backUpFolder(folder: string, target: string): Promise<BackupManifest> {
  if (readSandboxState(folder) === undefined || !existsSync(databaseOf(folder))) {
    throw new StartError(`expected the data folder of a sandbox, got \`${folder}\``);
  }
  if (existsSync(loadingOf(folder))) {
    throw new StartError(
      `a snapshot is being loaded into \`${folder}\`; start the sandbox, which finishes that`,
    );
  }
  if (existsSync(target)) throw new StartError(`\`${target}\` exists; choose a new folder`);
  const chains = existsSync(chainsOf(folder)) ? [chainsOf(folder)] : [];
  const databases = [databaseOf(folder), ...chains] as const;
  const images = imagesAtOnce(databases as readonly [string, ...string[]]);
  const files = new Map<string, Uint8Array>(databases.map((file, index) => [basename(file), images[index]!]));
  const left = new Set([...databases, lockOf(folder)].map((file) => basename(file)));
  for (const path of filesIn(folder, left)) files.set(path, readFileSync(join(folder, path)));
  const manifest = manifestOf(files, {
    version: packageVersion(),
    madeAtMs: systemClock.now(),
    schema: (await readSchemaVersion(databaseOf(folder))).version,
  });
  const temporary = `${target}.${process.pid}`;
  try {
    writeFiles(temporary, files);
    writeFileSync(manifestFile(temporary), `${JSON.stringify(manifest, undefined, 2)}\n`, {
      mode: 0o600,
      flush: true,
    });
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
  return manifest;
}

/** Files besides the databases and what belongs to a running process, by path. */
function filesIn(folder: string, left: ReadonlySet<string>): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/(-wal|-shm|-journal|\.\d+)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !left.has(path))
    .sort();
}
