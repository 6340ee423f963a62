import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entropy } from '../ports/entropy.ts';
import { StartError } from '../start-error.ts';

/** What a sandbox keeps beside its database, so that a restart finds everything as it was. */
export interface SandboxMemory {
  appId: string;
  /** The text itself: the sandbox tells it again at every start. */
  appSecret: string;
  /** 32 bytes in hex. */
  masterKeyHex: string;
  /** How often a sandbox was started on this folder. */
  starts: number;
  /** Names the log of events; drawn anew whenever it is emptied. */
  eventLog: string;
}

const memoryFile = 'sandbox.json';
const databaseFile = 'custos.sqlite';

/** Path of the database in a sandbox's folder. */
export function databaseOf(folder: string): string {
  return join(folder, databaseFile);
}

/** Path of the simulated chains in a sandbox's folder. */
export function chainsOf(folder: string): string {
  return join(folder, 'chain.sqlite');
}

/** What was kept in `folder`; undefined when no sandbox ever ran there. Throws StartError when it cannot be read. */
export function recallSandbox(folder: string): SandboxMemory | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, memoryFile), 'utf8')) as SandboxMemory;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new StartError(`\`${join(folder, memoryFile)}\` cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Keeps `memory` in `folder`, all of it or nothing, also when power is lost right after.
 *
 * NOTE: without the master key every wallet of the database beside it is lost, so this comes before the first wallet.
 */
export function rememberSandbox(folder: string, memory: SandboxMemory): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, memoryFile);
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(memory, undefined, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(draft, file);
  const descriptor = openSync(folder, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** A new master key in hex. */
export function drawMasterKeyHex(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(32)).toString('hex');
}

/** A new name for a log of events. It is no secret: it tells one log from the next, also under a seed. */
export function drawEventLogName(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(4)).toString('hex');
}
