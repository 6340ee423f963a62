import { readFileSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { StartError } from '../config/start-error.ts';
import type { RecordedRequest } from '../engine/authorization/signing-budget.ts';

// This file stores how many transactions the signer has signed for each request. A signature is returned only once its
// count is on disk.
//
// Each line consists of the CRC-32 of its JSON (8 hex digits), a space, and the JSON. The first line has the version of
// the format, every other line a list of changed requests. A line is written in one call, so a crash leaves at most one
// incomplete line, at the end.

/** Thrown when the count of a request cannot be stored. The transaction is then not signed. */
class JournalError extends Error {
  /** Marks the error for `isUnavailable` in `errors.ts`. */
  readonly isUnavailable = true;
  readonly unavailable = 'the signer';

  constructor(cause: unknown) {
    const code = (cause as NodeJS.ErrnoException).code ?? (cause as Error).name;
    super(`the signer cannot record what it signs (${code})`, { cause });
    this.name = 'JournalError';
  }
}

export interface BudgetJournal {
  /** The records in the file, oldest first. The last record of a request counts. */
  readonly recorded: readonly RecordedRequest[];
  /**
   * Resolves when the changes are on disk.
   *
   * @param all returns the current records of all requests. They replace the content of a file that has grown.
   * @throws JournalError
   */
  record(changes: readonly RecordedRequest[], all: () => readonly RecordedRequest[]): Promise<void>;
  close(): Promise<void>;
}

const VERSION = { version: 1 };
const PER_LINE = 1_000;

/**
 * CHOICE: smaller files are not rewritten. A signature takes about 200 bytes, so a file is first rewritten after about
 * 20,000 signatures.
 */
const MIN_BYTES = 4 * 1024 * 1024;

/**
 * Opens the journal in a folder and locks the folder, so that only one signer at a time uses it.
 *
 * @throws StartError when another signer uses the folder, when the lock cannot be created, or when the journal is
 * damaged.
 */
export async function openBudgetJournal(folder: string, leastBytes = MIN_BYTES): Promise<BudgetJournal> {
  const path = join(folder, 'spent-requests');
  const lock = await lockFolder(folder);
  const { recorded, wholeBytes } = readJournal(path);
  let file: FileHandle | undefined;
  let bytes = wholeBytes;
  /** The size of the file after its last rewrite; undefined if the next write must rewrite the file. */
  let leanBytes: number | undefined = recorded.length === 0 ? undefined : wholeBytes;
  let waiting: { changes: readonly RecordedRequest[]; done: PromiseWithResolvers<void> }[] = [];
  let writing: Promise<void> | undefined;

  async function append(changes: readonly RecordedRequest[]): Promise<void> {
    file ??= await open(path, 'r+');
    // Write at the end of the confirmed part, over the remains of a failed write.
    const line = lineOf(changes);
    await file.write(line, 0, line.length, bytes);
    await file.datasync();
    bytes += line.length;
  }

  async function replace(all: readonly RecordedRequest[]): Promise<void> {
    const lines = [lineOf(VERSION)];
    for (let at = 0; at < all.length; at += PER_LINE) lines.push(lineOf(all.slice(at, at + PER_LINE)));
    const content = Buffer.concat(lines);
    const next = await open(`${path}.new`, 'w', 0o600);
    try {
      await next.writeFile(content);
      await next.sync();
      await rename(`${path}.new`, path);
      await syncFolder(folder);
    } catch (error) {
      await next.close();
      throw error;
    }
    await file?.close();
    file = next;
    bytes = content.length;
    leanBytes = bytes;
  }

  /** Writes the queued changes until the queue is empty. Changes queued during a write share the next write. */
  async function write(all: () => readonly RecordedRequest[]): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const isLean = leanBytes !== undefined && bytes < Math.max(leastBytes, 2 * leanBytes);
        await (isLean ? append(batch.flatMap(({ changes }) => changes)) : replace(all()));
        for (const { done } of batch) done.resolve();
      } catch (cause) {
        // NOTE: after a failed sync, the next sync may succeed although the data is lost. The next write replaces the
        // file.
        leanBytes = undefined;
        for (const { done } of batch) done.reject(new JournalError(cause));
      }
    }
    writing = undefined;
  }

  return {
    recorded,
    record(changes, all) {
      const done = Promise.withResolvers<void>();
      waiting.push({ changes, done });
      writing ??= write(all);
      return done.promise;
    },
    async close() {
      await writing;
      await file?.close();
      lock.close();
    },
  };
}

function lineOf(content: object): Buffer {
  const text = JSON.stringify(content);
  return Buffer.from(`${crc32(text).toString(16).padStart(8, '0')} ${text}\n`);
}

/**
 * Reads the lines up to the first damaged one. Bytes after the last whole line were never confirmed.
 *
 * @throws StartError when a valid line follows a damaged one, or the file has no valid first line.
 */
function readJournal(path: string): { recorded: RecordedRequest[]; wholeBytes: number } {
  const content = readIfThere(path);
  const recorded: RecordedRequest[] = [];
  let wholeBytes = 0;
  let isDamaged = false;
  for (let at = 0; at < content.length; ) {
    const end = content.indexOf(0x0a, at) + 1;
    if (end === 0) break;
    const line = parseLine(content.toString('utf8', at, end - 1));
    const isExpected = wholeBytes === 0 ? isVersion(line) : Array.isArray(line);
    if (isExpected && isDamaged) throw damaged(path);
    if (isExpected) {
      if (Array.isArray(line)) recorded.push(...(line as RecordedRequest[]));
      wholeBytes = end;
    } else isDamaged = true;
    at = end;
  }
  if (wholeBytes === 0 && content.length > 0) throw damaged(path);
  return { recorded, wholeBytes };
}

function isVersion(line: unknown): boolean {
  return JSON.stringify(line) === JSON.stringify(VERSION);
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

function parseLine(text: string): unknown {
  const content = text.slice(9);
  if (text.slice(0, 8) !== crc32(content).toString(16).padStart(8, '0')) return undefined;
  return JSON.parse(content);
}

function damaged(path: string): StartError {
  return new StartError(
    `\`${path}\` is damaged; move it away to start without it, once the requests that were signed before have expired`,
  );
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/**
 * Locks the folder by listening on a Unix socket in it. The operating system closes the socket when the process ends,
 * even after a crash.
 */
async function lockFolder(folder: string): Promise<Server> {
  const path = join(folder, 'lock');
  if (await isListening(path)) throw new StartError(`another signer uses the folder \`${folder}\``);
  rmSync(path, { force: true });
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new StartError(`\`${path}\` cannot be used: ${(cause as NodeJS.ErrnoException).code}`, { cause }),
      ),
    );
    server.listen(path, resolve);
  });
  server.on('error', () => undefined);
  return server.unref();
}

/** Returns whether a process listens on a Unix socket. */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
