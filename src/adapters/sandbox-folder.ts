import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entropy } from '../ports/entropy.ts';
import { StartError } from '../start-error.ts';

/** The state that a sandbox stores next to its database, so that it survives restarts. */
export interface SandboxState {
  appId: string;
  /** In plain text: the sandbox prints it at every start. */
  appSecret: string;
  /** 32 bytes in hex. */
  masterKeyHex: string;
  /** Number of starts with this folder. */
  starts: number;
  /** Id of the event log; changes whenever the log is emptied. */
  eventLog: string;
}

const stateFile = 'sandbox.json';
const databaseFile = 'custos.sqlite';

/** Path of the database in a sandbox's folder. */
export function databaseOf(folder: string): string {
  return join(folder, databaseFile);
}

/** Path of the simulated chains in a sandbox's folder. */
export function chainsOf(folder: string): string {
  return join(folder, 'chain.sqlite');
}

/** The state stored in `folder`; undefined when there is none. Throws StartError when it cannot be read. */
export function readSandboxState(folder: string): SandboxState | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, stateFile), 'utf8')) as SandboxState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new StartError(`\`${join(folder, stateFile)}\` cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Stores the state in `folder`, atomically and durably.
 *
 * NOTE: must run before the first wallet is created: without the master key all wallets in the database are lost.
 */
export function writeSandboxState(folder: string, state: SandboxState): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, stateFile);
  const temporaryFile = `${file}.${process.pid}`;
  writeFileSync(temporaryFile, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(temporaryFile, file);
  const descriptor = openSync(folder, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Generates a master key in hex. */
export function generateMasterKeyHex(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(32)).toString('hex');
}

/** Generates an id for an event log. Not a secret: it only distinguishes one log from the next. */
export function generateEventLogId(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(4)).toString('hex');
}
