import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemClock, systemEntropy } from '../adapters/runtime.ts';
import {
  chainsOf,
  databaseOf,
  generateEventLogId,
  loadingOf,
  lockOf,
  readSandboxState,
  writeSandboxState,
} from '../adapters/sandbox-folder.ts';
import { markRestored } from '../admin/restored.ts';
import { makeFolder } from '../config/make-folder.ts';
import { packageVersion } from '../config/package-root.ts';
import { StartError } from '../config/start-error.ts';
import { acceptAccounts, findRestore, releaseRestore } from '../domain/base/restores/restores.ts';
import type { RestoreWatch } from '../jobs/watch-restores.ts';
import type { Services } from '../ports/operation-context.ts';
import { inUnitOf, type OpenUnit } from '../server/unit-of-work.ts';
import { lockFile } from '../storage/lock-file.ts';
import { readSchemaVersion } from '../storage/open-database.ts';
import { damageOf, imagesAtOnce } from '../storage/sqlite/images.ts';

const MANIFEST = 'backup.json';
const FORMAT = 1;

/** Describes the content of a sandbox's backup. */
interface BackupManifest {
  readonly format: number;
  /** The version of the program that made the backup. */
  readonly version: string;
  /** The time in ISO 8601. */
  readonly made_at: string;
  /** The number of migrations that have been applied to the database. */
  readonly schema: number;
  /** The files, by their path in the folder. */
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

function manifestOf(
  files: ReadonlyMap<string, Uint8Array>,
  {
    version,
    madeAtMs,
    schema,
  }: { readonly version: string; readonly madeAtMs: number; readonly schema: number },
): BackupManifest {
  const described = [...files].map(([path, content]) => [
    path,
    { bytes: content.length, sha256: hash('sha256', content) },
  ]);
  return {
    format: FORMAT,
    version,
    made_at: new Date(madeAtMs).toISOString(),
    schema,
    files: Object.fromEntries(described) as BackupManifest['files'],
  };
}

function manifestFile(folder: string): string {
  return join(folder, MANIFEST);
}

/** Writes files into a new folder that only this user can read. */
function writeFiles(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  for (const [path, content] of files) {
    makeFolder(dirname(join(folder, path)), 0o700);
    writeFileSync(join(folder, path), content, { mode: 0o600, flush: true });
  }
}

/**
 * Reads a backup, and compares its files with the manifest.
 *
 * @throws StartError
 */
function readBackup(folder: string): {
  readonly manifest: BackupManifest;
  readonly files: ReadonlyMap<string, Buffer>;
} {
  const manifest = readManifest(folder);
  const files = new Map<string, Buffer>();
  for (const [path, { bytes, sha256 }] of Object.entries(manifest.files)) {
    if (!isPlainPath(path)) throw new StartError(`\`${manifestFile(folder)}\` names \`${path}\``);
    const content = readOrRefuse(join(folder, path));
    if (content.length !== bytes || hash('sha256', content) !== sha256) {
      throw new StartError(`\`${join(folder, path)}\` differs from what was backed up; use another backup`);
    }
    files.set(path, content);
  }
  return { manifest, files };
}

function readManifest(folder: string): BackupManifest {
  const text = readOrRefuse(manifestFile(folder)).toString('utf8');
  let manifest: Partial<BackupManifest>;
  try {
    manifest = JSON.parse(text) as Partial<BackupManifest>;
  } catch (cause) {
    throw new StartError(`\`${manifestFile(folder)}\` is not JSON; use another backup`, { cause });
  }
  if (manifest.format !== FORMAT || typeof manifest.files !== 'object') {
    throw new StartError(`\`${folder}\` has the format ${manifest.format}, expected ${FORMAT}`);
  }
  return manifest as BackupManifest;
}

function readOrRefuse(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new StartError(`\`${file}\` cannot be read; expected a folder that \`custos backup\` wrote`, {
      cause,
    });
  }
}

/** Returns whether every part of a path is a plain name. The backup may come from someone else. */
function isPlainPath(path: string): boolean {
  return path.split('/').every((part) => /^[\w][\w.-]*$/.test(part));
}

/**
 * Writes a backup of a sandbox's folder into a new folder: both databases at the same moment, the master key, the
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

/** Lists the files of a sandbox by path, except the databases and the files of a running process. */
function filesIn(folder: string, left: ReadonlySet<string>): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/(-wal|-shm|-journal|\.\d+)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !left.has(path))
    .sort();
}

/** The result of a restore. */
export interface RestoredFolder {
  readonly manifest: BackupManifest;
  /** Where the folder's previous content is now. Undefined if there was none. */
  readonly replaced: string | undefined;
}

/**
 * Restores the data folder of a sandbox from a backup. Everything is checked before anything is replaced. The
 * replaced content is kept next to the folder, because it may contain the only copy of a master key.
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
    // Cursors that point to lost events must not point to other events later.
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

/**
 * Checks a restored folder.
 *
 * @throws StartError for a backup that this version cannot use.
 */
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

/** Renames the folder, unless a sandbox uses it. Returns its new path. */
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

const EVERY_MS = 1_000;
const HELD = 'the sandbox was restored from a backup: changes are held until `custos restored release`';

/**
 * Returns a watch that keeps a restored sandbox from changing anything until an operator releases it; undefined if
 * changes are allowed. The watch is needed only if the sandbox uses chains with real nodes, because these may be ahead
 * of the folder. Simulated chains were restored with the folder, so nothing can happen twice on them.
 */
export async function restoredSandbox(
  { clock }: Pick<Services, 'clock'>,
  units: OpenUnit,
  hasNodes: boolean,
): Promise<RestoreWatch | undefined> {
  const inUnit = inUnitOf(units);
  const isOpen = async (): Promise<boolean> => (await inUnit(findRestore))?.releasedAtMs === null;
  if (!(await isOpen())) return undefined;
  if (!hasNodes) {
    await inUnit(async (em) => {
      const nowMs = clock.now();
      await releaseRestore(em, nowMs);
      await acceptAccounts(em, 'all', { nowMs, by: 'chain' });
    });
    return undefined;
  }
  let isHeld = true;
  const reason = (): string | undefined => (isHeld ? HELD : undefined);
  return {
    name: 'watch-restores',
    everyMs: EVERY_MS,
    async run() {
      if (isHeld) isHeld = await isOpen();
      return false;
    },
    open: async () => undefined,
    // The restore was noticed before this process began.
    freeze: { reason, settled: async () => reason(), restoredAtMs: () => undefined },
    acknowledge: () => undefined,
    doubt: () => undefined,
  };
}
