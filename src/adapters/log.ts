import pino from 'pino';
import type { Log } from '../ports/log.ts';

interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
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

/** The longest time that a line waits for others to be written with it. */
const MAX_DELAY_MS = 20;
const BATCH_BYTES = 8192;

/** CHOICE: when the reader of the log is stuck, lines beyond this are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Structured log on a file descriptor. Redacts fields named like a secret, at the top level and one level below.
 *
 * Lines are written together: each write costs more CPU than a small request. They wait for `MAX_DELAY_MS` at most, and
 * the rest is written when the process exits.
 */
export function makeLog(options: LogOptions): Log {
  const destination = pino.destination({
    dest: options.descriptor,
    sync: false,
    minLength: BATCH_BYTES,
    maxLength: MAX_WAITING_BYTES,
  });
  let isFlushDue = false;
  const flush = (): void => {
    isFlushDue = false;
    destination.flush();
  };
  const write = (text: string): void => {
    destination.write(text);
    if (isFlushDue) return;
    isFlushDue = true;
    setTimeout(flush, MAX_DELAY_MS).unref();
  };
  const settings: pino.LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: (fields) => withoutSecrets(fields, 2) },
    serializers: { err: errorFields, cause: errorFields },
  };
  return pino(settings, {
    write: options.format === 'json' ? write : (line: string) => write(readableLine(line)),
  });
}

/** The log of a server whose output is JSON lines. */
export function logOf({ logLevel }: { readonly logLevel: LogOptions['level'] }): Log {
  return logLevel === 'silent' ? silentLog : makeLog({ level: logLevel, format: 'json', descriptor: 1 });
}

/** A copy without the fields named like a secret, down to `depth` levels; the same object if there are none. */
function withoutSecrets(fields: Record<string, unknown>, depth: number): Record<string, unknown> {
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
  return Array.isArray(value) ? value : withoutSecrets(value as Record<string, unknown>, depth);
}

function errorFields(error: Error): unknown {
  return cleanValue(pino.stdSerializers.err(error), 1);
}

/** Discards all entries. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** `10:42:07 info  request done operation=createWallet status=200`, errors with their stack below. */
function readableLine(jsonLine: string): string {
  const { level, time, msg, err, cause, ...fields } = JSON.parse(jsonLine) as Record<string, unknown>;
  const details = Object.entries(fields).map(([name, value]) => ` ${name}=${readableValue(value)}`);
  const stack = [err, cause].map((error) => (error as { stack?: string } | undefined)?.stack);
  const below = stack.filter((text) => text !== undefined).map((text) => `\n${text}`);
  const clock = String(time).slice(11, 19);
  return `${clock} ${String(level).padEnd(5)} ${msg ?? ''}${details.join('')}${below.join('')}\n`;
}

function readableValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
