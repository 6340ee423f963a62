import pino from 'pino';
import { configure } from 'safe-stable-stringify';
import type { Log } from '../ports/log.ts';
import { LINES_DROPPED, logOutput } from './log-output.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof levels)[number];
type Fields = Record<string, unknown>;

interface LogOptions {
  level: Level | 'silent';
  /** JSON lines, or human-readable lines. */
  format: 'json' | 'text';
  /** File descriptor: 1 standard output, 2 standard error. */
  descriptor: 1 | 2;
}

// A second safeguard: no caller logs these on purpose, but a logged object may contain one.
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

/** JSON of anything, also of what is large, contains itself or is a bigint. Takes longer than `JSON.stringify`. */
const stringifySafely = configure({ maximumDepth: 5, maximumBreadth: 100, deterministic: false });

/** Structured log on a file descriptor. Redacts fields named like a secret, at the top level and one level below. */
export function makeLog(options: LogOptions): Log {
  const lineOf = options.format === 'json' ? jsonLine : readableLine;
  const output = logOutput(options.descriptor);
  output.describeDrops((lines) => lineOf('warn', { lines }, LINES_DROPPED));
  /** Never throws: a field may have a getter or a `toJSON` that does. */
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

/** The log of a server whose output is JSON lines. */
export function logOf({ logLevel }: { readonly logLevel: LogOptions['level'] }): Log {
  return logLevel === 'silent' ? silentLog : makeLog({ level: logLevel, format: 'json', descriptor: 1 });
}

/** A copy without the fields named like a secret, down to `depth` levels; the same object if there are none. */
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

/** `{"level":"info","time":"2026-01-01T10:42:07.000Z","operation":"createWallet","status":200,"msg":"request"}` */
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

/** `10:42:07 info  request operation=createWallet status=200`, errors with their stack below. */
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
