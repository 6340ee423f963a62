import { createHash } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { HttpArchive, RecordedRequests, SandboxEventCounts } from '../sandbox/generated/schemas.ts';
import { removeSnapshot, saveSnapshot } from '../tools/client/world.ts';
import type { Connection } from './connection.ts';

/** The folder of kept files if a test chooses none. */
const KEPT_FOLDER = 'custos-failures';

/** The name under which the state is saved while it is written. */
const SNAPSHOT = 'kept-by-a-test';

/** The maximum length of a test's name in the name of its file, which may have at most 255 bytes. */
const MAX_NAME_BYTES = 100;

/** Returns the position after the newest recorded request. */
export async function newestPosition(connection: Connection): Promise<string> {
  return (await connection.call<RecordedRequests>('GET', '/requests?after=now&limit=1')).cursor;
}

/**
 * Writes the whole state, and the requests after a position, to a file for `custos inspect`. Also writes the requests
 * to an HTTP Archive beside it.
 */
export async function keepState(connection: Connection, file: string, after: string): Promise<void> {
  const folder = dirname(file);
  const isNew = (await mkdir(folder, { recursive: true })) !== undefined;
  // The requests are unredacted, so they do not belong in a repository.
  if (isNew) await writeFile(join(folder, '.gitignore'), '*\n');
  await saveSnapshot(connection, SNAPSHOT, file, after);
  await removeSnapshot(connection, SNAPSHOT);
  const archive = await archiveAfter(connection, after);
  // Like the state, the requests may contain what only the developer may see.
  await writeFile(`${file.replace(/\.custos$/, '')}.har`, JSON.stringify(archive), { mode: 0o600 });
}

function archiveAfter(connection: Connection, after: string): Promise<HttpArchive> {
  return connection.call('GET', `/requests.har?limit=10000&after=${encodeURIComponent(after)}`);
}

/**
 * Returns the file in which a failed test's state is kept.
 *
 * @param testFile the test's file. Tests of two files may have the same names.
 * @param names the names of the groups around the test, and its own.
 */
export function keptFile(folder: string | true, testFile: string, names: readonly string[]): string {
  const name = names
    .join(' ')
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '');
  const identity = JSON.stringify([relative('', testFile), ...names]);
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 8);
  return join(folder === true ? KEPT_FOLDER : folder, `${startOf(name) || 'test'}-${hash}.custos`);
}

/** Cuts a name to `MAX_NAME_BYTES`, between two characters. */
function startOf(name: string): string {
  let start = '';
  for (const character of name) {
    if (Buffer.byteLength(start + character) > MAX_NAME_BYTES) break;
    start += character;
  }
  return start;
}

/**
 * One line of a collector's file: the requests since the previous line, and the counts of all events since the
 * sandbox's start or last reset. `stretch` is the number of resets before the line.
 */
export interface CollectedLine {
  readonly stretch: number;
  readonly entries: HttpArchive['log']['entries'];
  readonly eventCounts: SandboxEventCounts['data'];
}

/** Writes what a sandbox has recorded to a file, for the reporter of a test runner in another process. */
export interface Collector {
  collect(): Promise<void>;
  /** Must be called after the sandbox was reset, which deletes its events. */
  startStretch(): void;
}

/** Creates a collector that writes one line of JSON for each call to a file of its own in the folder. */
export function collectorIn(folder: string, connection: Connection): Collector {
  const file = join(mkdtempSync(join(folder, 'sandbox-')), 'requests.ndjson');
  let after = 'start';
  let stretch = 0;
  return {
    async collect() {
      const { log } = await archiveAfter(connection, after);
      const { data: eventCounts } = await connection.call<SandboxEventCounts>('GET', '/event_counts');
      after = await newestPosition(connection);
      const line: CollectedLine = { stretch, entries: log.entries, eventCounts };
      await appendFile(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    },
    startStretch() {
      stretch += 1;
    },
  };
}
