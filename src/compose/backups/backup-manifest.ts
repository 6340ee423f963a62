import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../make-folder.ts';
import { StartError } from '../../start-error.ts';

const MANIFEST = 'backup.json';
const FORMAT = 1;

/** What a backup of a sandbox consists of. */
export interface BackupManifest {
  readonly format: number;
  /** Of the program that made it. */
  readonly version: string;
  /** ISO 8601. */
  readonly made_at: string;
  /** Migrations that the database has. */
  readonly schema: number;
  /** By path in the folder. */
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

export function manifestOf(
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

export function manifestFile(folder: string): string {
  return join(folder, MANIFEST);
}

/** Writes files into a folder, which is created. Only this user can read them. */
export function writeFiles(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  for (const [path, content] of files) {
    makeFolder(dirname(join(folder, path)), 0o700);
    writeFileSync(join(folder, path), content, { mode: 0o600, flush: true });
  }
}

/**
 * Reads a backup, and compares its files with what was written.
 *
 * @throws StartError
 */
export function readBackup(folder: string): {
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

/** The backup may come from elsewhere. */
function isPlainPath(path: string): boolean {
  return path.split('/').every((part) => /^[\w][\w.-]*$/.test(part));
}
