import { write, writeSync } from 'node:fs';
import pino from 'pino';
import { configure } from 'safe-stable-stringify';
import type { Log } from '../ports/runtime.ts';

/**
 * Writes lines to a file descriptor. It never stops the process, even when the disk is full, or when the reader has
 * ended or hangs. Lines that cannot be written are dropped and counted.
 */
export interface LogOutput {
  /** Queues complete lines, which are written together within `MAX_DELAY_MS`. */
  write(lines: string): void;
  /**
   * Sets the function that writes the line about dropped lines. The line is written as soon as writes succeed again.
   */
  describeDrops(describe: (lines: number) => string): void;
  /** Returns the number of lines dropped so far. */
  dropped(): number;
}

type Descriptor = 1 | 2;

/**
 * The time that a line may wait to be written together with others. Each write costs more CPU time than a small
 * request.
 */
const MAX_DELAY_MS = 20;
const BATCH_LENGTH = 8192;

/** CHOICE: when the reader of the log hangs, further lines are dropped while this many bytes wait. */
const MAX_WAITING_LENGTH = 16 * 1024 * 1024;

/** CHOICE: the interval of retries on a full disk, or when the reader has ended. */
const RETRY_MS = 1_000;
/** The interval of retries while a reader is slow. */
const BUSY_MS = 50;

/** CHOICE: how long the end of the process waits for a slow reader of the last lines. */
const MAX_EXIT_MS = 5_000;
/** CHOICE: at the end of the process, a reader that accepts no byte for this time counts as hung. */
const MAX_EXIT_SILENCE_MS = 1_000;
const EXIT_RETRY_MS = 2;

/** The message of the line about dropped lines. */
const LINES_DROPPED = 'lines of the log were dropped, because they could not be written';

const NOTHING = Buffer.alloc(0);
const LINE_FEED = 0x0a;
const outputs = new Map<Descriptor, LogOutput>();

/** Returns the output on a descriptor. A process must have only one per descriptor. */
export function logOutput(descriptor: Descriptor): LogOutput {
  const known = outputs.get(descriptor);
  if (known !== undefined) return known;
  const made = openOutput(descriptor);
  outputs.set(descriptor, made);
  return made;
}

export function droppedLogLines(): number {
  return [...outputs.values()].reduce((sum, output) => sum + output.dropped(), 0);
}

function openOutput(descriptor: Descriptor): LogOutput {
  makeNonBlocking(descriptor);
  let waiting = '';
  /** The bytes that are being written, and whether they are log lines or the line about dropped lines. */
  let batch: Buffer = NOTHING;
  let batchIs: 'lines' | 'note' = 'lines';
  let state: 'idle' | 'writing' | 'busy reader' = 'idle';
  let isFlushDue = false;
  /** Whether the last write failed. Until the line about dropped lines can be written, nothing else is tried. */
  let isFailing = false;
  /** Whether a write ended in the middle of a line. */
  let isMidLine = false;
  let dropped = 0;
  let noted = 0;
  let notedByBatch = 0;
  let describe = describeAsJson;

  function takeNote(): string {
    notedByBatch = dropped;
    return (isMidLine ? '\n' : '') + describe(dropped - noted);
  }

  function flush(): void {
    isFlushDue = false;
    if (state !== 'idle' || isFailing) return;
    if (dropped > noted) {
      begin('note', takeNote());
    } else if (waiting.length > 0) {
      const lines = waiting;
      waiting = '';
      begin('lines', lines);
    }
  }

  function begin(kind: typeof batchIs, text: string): void {
    batchIs = kind;
    batch = Buffer.from(text);
    attempt();
  }

  function attempt(): void {
    state = 'writing';
    write(descriptor, batch, (error, written) => {
      if (error?.code === 'EAGAIN') {
        state = 'busy reader';
        setTimeout(attempt, BUSY_MS).unref();
      } else if (error) {
        fail();
      } else {
        isMidLine = batch[written - 1] !== LINE_FEED;
        batch = batch.subarray(written);
        if (batch.length > 0) attempt();
        else succeed();
      }
    });
  }

  function succeed(): void {
    state = 'idle';
    isFailing = false;
    if (batchIs === 'note') noted = notedByBatch;
    if (dropped > noted || waiting.length >= BATCH_LENGTH) flush();
    else if (waiting.length > 0) flushSoon();
  }

  function fail(): void {
    state = 'idle';
    isFailing = true;
    // If the line about dropped lines failed, it is not kept: the retry writes a new one, with the number of dropped
    // lines at that time.
    if (batchIs === 'lines') dropped += linesIn(batch);
    batch = NOTHING;
    dropped += linesIn(waiting);
    waiting = '';
    setTimeout(() => begin('note', takeNote()), RETRY_MS).unref();
  }

  function flushSoon(): void {
    if (isFlushDue) return;
    isFlushDue = true;
    setTimeout(flush, MAX_DELAY_MS).unref();
  }

  // Writes the waiting lines at the end of the process. Bytes that a thread is writing are not written twice.
  process.on('exit', () => {
    const unfinished = state === 'busy reader' ? batch : NOTHING;
    const note = dropped > (batchIs === 'note' && state !== 'idle' ? notedByBatch : noted) ? takeNote() : '';
    writeAtOnce(descriptor, Buffer.concat([unfinished, Buffer.from(note + waiting)]));
  });

  return {
    write(lines) {
      if (isFailing || waiting.length + lines.length > MAX_WAITING_LENGTH) {
        dropped += linesIn(lines);
        return;
      }
      waiting += lines;
      if (waiting.length >= BATCH_LENGTH) flush();
      else flushSoon();
    },
    describeDrops(given) {
      describe = given;
    },
    dropped: () => dropped,
  };
}

function describeAsJson(lines: number): string {
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lines, msg: LINES_DROPPED })}\n`;
}

/**
 * Makes a pipe or a socket non-blocking, as Node does for its own stream. A blocked write would occupy one of Node's
 * threads, and the process could not end.
 */
function makeNonBlocking(descriptor: Descriptor): void {
  void (descriptor === 1 ? process.stdout : process.stderr);
}

/** Writes synchronously until all bytes are written, a write fails, or the reader is too slow. */
function writeAtOnce(descriptor: Descriptor, bytes: Buffer): void {
  const never = new Int32Array(new SharedArrayBuffer(4));
  const startMs = performance.now();
  let progressMs = startMs;
  let left = bytes;
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(descriptor, left));
      progressMs = performance.now();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      const nowMs = performance.now();
      if (nowMs - progressMs >= MAX_EXIT_SILENCE_MS || nowMs - startMs >= MAX_EXIT_MS) return;
      Atomics.wait(never, 0, 0, EXIT_RETRY_MS);
    }
  }
}

/** Counts the lines of a text or of UTF-8 bytes. */
function linesIn(text: string | Buffer): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

const levels = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof levels)[number];
type Fields = Record<string, unknown>;

interface LogOptions {
  level: Level | 'silent';
  /** The format of lines: JSON, or text for people. */
  format: 'json' | 'text';
  /** The file descriptor: 1 is standard output, 2 is standard error. */
  descriptor: 1 | 2;
}

// A second safeguard: no caller logs secrets on purpose, but a logged object may contain one.
const secretNames = [
  'authorization',
  'app_secret',
  'appSecret',
  'secret',
  'password',
  'private_key',
  'privateKey',
  'masterKey',
  'token',
  'cookie',
  'signature',
];
const secretFields = new Set([...secretNames, ...secretNames.map((name) => `service-authorization-${name}`)]);
const REMOVED = '[removed]';

/**
 * Converts any value to JSON, including values that are large, contain themselves or are bigints. Slower than
 * `JSON.stringify`.
 */
const stringifySafely = configure({ maximumDepth: 5, maximumBreadth: 100, deterministic: false });

/**
 * Makes a structured log on a file descriptor. It redacts fields with the name of a secret, at the top level and one
 * level below.
 */
export function makeLog(options: LogOptions): Log {
  const lineOf = options.format === 'json' ? jsonLine : readableLine;
  const output = logOutput(options.descriptor);
  output.describeDrops((lines) => lineOf('warn', { lines }, LINES_DROPPED));
  /** Formats a line. Never throws, although the getter or the `toJSON` of a field may throw. */
  const line = (level: Level, fields: Fields, message: string): string => {
    try {
      return lineOf(level, withoutSecrets(fields, 2), message);
    } catch {
      return lineOf(level, { fields: 'unreadable' }, message);
    }
  };
  const least = options.level === 'silent' ? levels.length : levels.indexOf(options.level);
  const at = (level: Level): Log[Level] =>
    levels.indexOf(level) < least
      ? () => undefined
      : (fields, message) => output.write(line(level, fields as Fields, message));
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Returns the log of a server whose standard output is JSON lines. */
export function logOf({ logLevel }: { readonly logLevel: LogOptions['level'] }): Log {
  return logLevel === 'silent' ? silentLog : makeLog({ level: logLevel, format: 'json', descriptor: 1 });
}

/**
 * Returns a copy without the fields that have the name of a secret, down to `depth` levels. Returns the same object
 * if there are none.
 */
function withoutSecrets(fields: Fields, depth: number): Fields {
  let clean = fields;
  for (const name in fields) {
    const value = fields[name];
    const kept = secretFields.has(name) ? REMOVED : depth > 1 ? cleanValue(value, depth - 1) : value;
    if (kept === value) continue;
    if (clean === fields) clean = { ...fields };
    clean[name] = kept;
  }
  return clean;
}

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  return Array.isArray(value) ? value : withoutSecrets(value as Fields, depth);
}

/** Discards all entries. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Returns a line such as
 * `{"level":"info","time":"2026-01-01T10:42:07.000Z","operation":"createWallet","status":200,"msg":"request"}`.
 */
function jsonLine(level: Level, fields: Fields, message: string): string {
  const line: Fields = { level, time: new Date().toISOString(), ...fields, msg: message };
  for (const name of ['err', 'cause']) {
    const value = fields[name];
    if (value instanceof Error) line[name] = cleanValue(pino.stdSerializers.err(value), 1);
  }
  return `${Object.values(line).every(isPlain) ? JSON.stringify(line) : stringifySafely(line)}\n`;
}

function isPlain(value: unknown): boolean {
  return typeof value !== 'object' && typeof value !== 'bigint';
}

/**
 * Returns a line such as `10:42:07 info  request operation=createWallet status=200`. The stack of an error follows on
 * the next lines.
 */
function readableLine(level: Level, fields: Fields, message: string): string {
  let [details, below] = ['', ''];
  for (const name in fields) {
    const value = fields[name];
    if (value instanceof Error) below += `\n${pino.stdSerializers.err(value).stack}`;
    else if (value !== undefined) details += ` ${name}=${readableValue(value)}`;
  }
  const clock = new Date().toISOString().slice(11, 19);
  return `${clock} ${level.padEnd(5)} ${message}${details}${below}\n`;
}

function readableValue(value: unknown): string {
  return typeof value === 'object' ? (stringifySafely(value) ?? '') : String(value);
}
