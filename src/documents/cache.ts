import { hash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';

import { join } from 'node:path';
import { packageVersion } from '../package-root.ts';
import type { CompiledDocument } from './compile-document.ts';
import type { OpenApiDocument } from './open-api.ts';

/** Compiled documents that are kept; the oldest are deleted. */
const MAX_KEPT = 20;

/**
 * The validators of a document from the folder, or compiled and stored there, by the digest of the document and the
 * version of this program. `folder`: undefined for no cache; nothing fails if it cannot be used.
 *
 * INVARIANT: what is read is run as code, so the folder and the file must belong to this user, and others must not be
 * able to write to them.
 */
export function cachedCompilation(
  document: OpenApiDocument,
  folder: string | undefined,
  compile: () => CompiledDocument,
): { readonly compiled: CompiledDocument; readonly isFromCache: boolean } {
  const digest = hash('sha256', `${packageVersion()}\n${process.version}\n${JSON.stringify(document)}`);
  const place = folder === undefined ? undefined : openFolder(folder);
  const file = place === undefined ? undefined : join(place, `${digest}.json`);
  const kept = file === undefined ? undefined : readKept(file);
  if (kept !== undefined) return { compiled: kept, isFromCache: true };
  const compiled = compile();
  if (place !== undefined && file !== undefined) store(place, file, compiled);
  return { compiled, isFromCache: false };
}

/** The folder for compiled documents; undefined if it cannot be trusted or written. */
function openFolder(folder: string): string | undefined {
  const place = join(folder, 'documents');
  try {
    mkdirSync(place, { recursive: true, mode: 0o700 });
    return [folder, place].every((path) => isOwn(path) && lstatSync(path).isDirectory()) ? place : undefined;
  } catch {
    return undefined;
  }
}

/** Whether this user alone can write to it. Windows has no such modes; folders of a profile are its user's. */
function isOwn(path: string): boolean {
  const uid = process.getuid?.() ?? -1;
  const found = lstatSync(path);
  return uid < 0 || (found.uid === uid && (found.mode & 0o022) === 0);
}

function readKept(file: string): CompiledDocument | undefined {
  try {
    if (!lstatSync(file).isFile() || !isOwn(file)) return undefined;
    return JSON.parse(readFileSync(file, 'utf8')) as CompiledDocument;
  } catch {
    return undefined;
  }
}

function store(place: string, file: string, compiled: CompiledDocument): void {
  const temporaryFile = `${file}.${process.pid}`;
  try {
    rmSync(file, { force: true });
    writeFileSync(temporaryFile, JSON.stringify(compiled), { mode: 0o600, flag: 'wx' });
    renameSync(temporaryFile, file);
    const files = readdirSync(place).map((name) => join(place, name));
    const byAge = files.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
    for (const old of byAge.slice(MAX_KEPT)) rmSync(old, { force: true });
  } catch {
    // The next start compiles again.
    try {
      rmSync(temporaryFile, { force: true });
    } catch {
      // NOTE: `force` ignores only that the file is absent, not that the folder may not be entered.
    }
  }
}
