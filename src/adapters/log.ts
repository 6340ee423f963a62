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
const secretFields = [
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

/** Structured log on a file descriptor. Redacts fields named like a secret, at the top level and one level below. */
export function makeLog(options: LogOptions): Log {
  const destination = pino.destination({ dest: options.descriptor, sync: options.format === 'text' });
  const settings: pino.LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: pino.stdSerializers.err, cause: pino.stdSerializers.err },
    redact: {
      paths: secretFields.flatMap((field) => [field, `*.${field}`, `*["service-authorization-${field}"]`]),
      censor: '[removed]',
    },
  };
  if (options.format === 'json') return pino(settings, destination);
  return pino(settings, { write: (line: string) => void destination.write(readableLine(line)) });
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
