import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../config/make-folder.ts';
import { StartError } from '../config/start-error.ts';
import type { Entropy } from '../ports/runtime.ts';
import { systemEntropy } from './runtime.ts';

/** The state that a sandbox stores next to its database, so that it survives restarts. */
export interface SandboxState {
  appId: string;
  /** The app secret in plain text. The sandbox prints it at every start. */
  appSecret: string;
  /** The master key: 32 bytes in hex. */
  masterKeyHex: string;
  starts: number;
  /** The id of the event log. It changes whenever the log is replaced. */
  eventLog: string;
  /** The sequence number of the last event before the log got its id. */
  eventLogBeginsAfter: number;
}

const stateFile = 'sandbox.json';
const databaseFile = 'custos.sqlite';

/** Returns the path of the database in a sandbox's folder. */
export function databaseOf(folder: string): string {
  return join(folder, databaseFile);
}

/** Returns the path of the simulated chains in a sandbox's folder. */
export function chainsOf(folder: string): string {
  return join(folder, 'chain.sqlite');
}

/**
 * Returns the path of a snapshot that is being loaded. If the sandbox is killed while it loads the snapshot, its next
 * start finishes the loading.
 */
export function loadingOf(folder: string): string {
  return join(folder, 'loading.snapshot');
}

/** Returns the path of the lock that a running sandbox holds on its folder. */
export function lockOf(folder: string): string {
  return join(folder, 'sandbox.lock');
}

/**
 * Reads the state in `folder`; undefined if the folder has no state. Fields that older versions did not write get
 * defaults.
 *
 * @throws StartError if the state is unreadable or malformed. It may contain the only copy of the master key, so it is
 * not replaced.
 */
export function readSandboxState(folder: string): SandboxState | undefined {
  const file = join(folder, stateFile);
  try {
    return requireState(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new StartError(`\`${file}\` cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function requireState(content: unknown): SandboxState {
  if (typeof content !== 'object' || content === null) throw new Error('expected a JSON object');
  const { appId, appSecret, masterKeyHex } = content as Partial<SandboxState>;
  const { starts = 1, eventLog = generateEventLogId(systemEntropy) } = content as Partial<SandboxState>;
  const { eventLogBeginsAfter = 0 } = content as Partial<SandboxState>;
  const require = (name: keyof SandboxState, isValid: boolean, expected: string): void => {
    // The message does not contain the value, which may be a secret.
    if (!isValid) throw new Error(`expected \`${name}\` to be ${expected}`);
  };
  require('appId', isText(appId), 'the id of an app');
  require('appSecret', isText(appSecret), 'the secret of an app');
  require('masterKeyHex', isText(masterKeyHex) &&
    /^[0-9a-f]{64}$/i.test(masterKeyHex), '64 hexadecimal digits');
  require('starts', Number.isSafeInteger(starts) && starts > 0, 'the number of starts');
  require('eventLog', isText(eventLog), 'the id of the event log');
  require('eventLogBeginsAfter', Number.isSafeInteger(eventLogBeginsAfter) &&
    eventLogBeginsAfter >= 0, 'the number of an event');
  return {
    ...content,
    appId,
    appSecret,
    masterKeyHex,
    starts,
    eventLog,
    eventLogBeginsAfter,
  } as SandboxState;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

const folderAdvice: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; make space',
  EDQUOT: 'the disk quota is used up; make space',
  EROFS: 'it is read-only; make it writable',
  EACCES: 'no permission; give this user access',
  EPERM: 'no permission; give this user access',
  ENOENT: 'a file or folder is missing; create it',
  ENOTDIR: 'it is not a folder; remove the file',
  EEXIST: 'it is not a folder; remove the file',
  EISDIR: 'a file in it is a folder; remove that folder',
  SQLITE_NOTADB: 'a file in it is not a database; restore the file from a backup',
  SQLITE_CORRUPT: 'a database in it is damaged; restore the file from a backup',
  SQLITE_FULL: 'the disk is full; make space',
  SQLITE_READONLY: 'a database in it is read-only; make it writable',
  SQLITE_CANTOPEN: 'a database in it cannot be opened; give this user access',
  SQLITE_IOERR: 'a database in it cannot be read or written; check the disk',
};

/** Converts the error of a start with `folder`. If the folder is the cause, the new error says what to do. */
export function startErrorOf(folder: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StartError) return error;
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    // An error of `listen` is about a port, not about the folder.
    if (code === undefined || syscall === 'listen') continue;
    const advice = folderAdvice[code] ?? folderAdvice[code.split('_').slice(0, 2).join('_')];
    if (advice === undefined) continue;
    const text = `the data folder \`${folder}\` cannot be used: ${advice}, or choose another folder with --data`;
    return new StartError(`${text} (${cause.message})`, { cause: error });
  }
  return error;
}

/**
 * Stores the state in `folder`, atomically and durably.
 *
 * NOTE: must run before the first wallet is created: without the master key all wallets in the database are lost.
 */
export function writeSandboxState(folder: string, state: SandboxState): void {
  makeFolder(folder, 0o700);
  const file = join(folder, stateFile);
  const temporaryFile = `${file}.${process.pid}`;
  try {
    writeFileSync(temporaryFile, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(temporaryFile, file);
  } catch (error) {
    rmSync(temporaryFile, { force: true });
    throw error;
  }
  const descriptor = openSync(folder, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

export function generateMasterKeyHex(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(32)).toString('hex');
}

/** Generates an id for an event log. It is not a secret, and only distinguishes one log from the next. */
export function generateEventLogId(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(4)).toString('hex');
}
