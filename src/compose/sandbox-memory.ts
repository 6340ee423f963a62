import { existsSync } from 'node:fs';
import { acmeApp } from '../../mocks/apps.ts';
import { requireFreePort } from '../adapters/own-server.ts';
import { systemEntropy } from '../adapters/runtime.ts';
import {
  databaseOf,
  generateEventLogId,
  generateMasterKeyHex,
  lockOf,
  readSandboxState,
  type SandboxState,
  writeSandboxState,
} from '../adapters/sandbox-folder.ts';
import type { SandboxConfig } from '../config/config.ts';
import { makeFolder } from '../config/make-folder.ts';
import { StartError } from '../config/start-error.ts';
import { drawAppSecret } from '../domain/access/apps/find-app.ts';
import type { Entropy } from '../ports/runtime.ts';
import { encodeSnapshot, type Snapshot } from '../sandbox/snapshot-file.ts';
import { isLoopbackHost } from '../server/origins.ts';
import { lockFile } from '../storage/lock-file.ts';
import { beginLoadingContent, finishLoading, keptBy } from './load-into-folder.ts';

/** The state of a sandbox that is kept between starts. */
export interface SandboxMemory {
  readonly state: SandboxState;
  /** Changes the state, and stores it if there is a folder. */
  change(changes: Partial<SandboxState>): void;
  /** Stores the state of this start. Must be called once the database has accepted the master key. */
  keep(): void;
  /** Releases the lock on the folder. */
  release(): void;
}

/**
 * Reads the state in the folder and locks the folder. Options take precedence over the stored state. A snapshot to
 * load replaces the content of the folder.
 *
 * INVARIANT: a stored master key is never replaced, except together with the database. A new one is stored only in a
 * folder without a database, or after the database has accepted it.
 *
 * @throws StartError if another sandbox uses the folder, or if its state cannot be read.
 * @throws the system's error if a port is in use. Nothing has been changed then.
 */
export async function openMemory(
  config: SandboxConfig,
  snapshot: Snapshot | undefined,
): Promise<SandboxMemory> {
  const { dataFolder: folder } = config;
  if (folder === undefined) {
    let state = stateOf(config, snapshot && keptBy(snapshot));
    const change = (changes: Partial<SandboxState>): void => {
      state = { ...state, ...changes };
    };
    return {
      get state() {
        return state;
      },
      ...{ change, keep: () => undefined, release: () => undefined },
    };
  }
  makeFolder(folder, 0o700);
  const lock = lockFile(lockOf(folder));
  if ('heldBy' in lock) {
    throw new StartError(
      `another sandbox (process ${lock.heldBy}) uses \`${folder}\`; stop it, or choose another folder with --data`,
    );
  }
  try {
    // Check the ports before anything is stored: a failed start must not count, because a seed's ids depend on the
    // number of starts.
    for (const port of [config.port, config.adminPort ?? 0]) await requireFreePort(config.host, port);
    await requireFreePort('127.0.0.1', config.rpcPort ?? 0);
    if (snapshot !== undefined) beginLoadingContent(folder, Buffer.concat(encodeSnapshot(snapshot)));
    await finishLoading(folder);
    const kept = readSandboxState(folder);
    let state = stateOf(config, kept);
    const keep = (): void => writeSandboxState(folder, state);
    if (kept === undefined && !existsSync(databaseOf(folder))) keep();
    const change = (changes: Partial<SandboxState>): void => {
      state = { ...state, ...changes };
      keep();
    };
    return {
      get state() {
        return state;
      },
      ...{ change, keep, release: lock.release },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function stateOf(config: SandboxConfig, kept: Partial<SandboxState> | undefined): SandboxState {
  return {
    appId: config.appId ?? kept?.appId ?? acmeApp.id,
    appSecret: config.appSecret ?? appSecretFor(config.host, kept),
    masterKeyHex: kept?.masterKeyHex ?? generateMasterKeyHex(systemEntropy),
    starts: (kept?.starts ?? 0) + 1,
    eventLog: kept?.eventLog ?? generateEventLogId(systemEntropy),
    eventLogBeginsAfter: kept?.eventLogBeginsAfter ?? 0,
  };
}

/**
 * Returns the app secret for a new start.
 *
 * CHOICE: only a sandbox that no other machine can reach uses the published secret. Any other sandbox gets a random
 * secret, even with a seed, because someone else may know the seed.
 */
function appSecretFor(host: string, kept: Partial<SandboxState> | undefined): string {
  const secret = kept?.appSecret ?? acmeApp.secret;
  return secret === acmeApp.secret && !isLoopbackHost(host) ? drawAppSecret(systemEntropy) : secret;
}

/** The name of a sandbox's event log. It changes when the log is replaced, so that its readers notice. */
export interface EventLog {
  name(): string;
  /** Returns the sequence number of the last event that the log had when it got this name. */
  beginsAfter(): number;
  /** Changes the name. Must be called after the log was replaced. */
  restart(beginsAfter: number): void;
}

export function openEventLog(memory: SandboxMemory, entropy: Entropy): EventLog {
  return {
    name: () => memory.state.eventLog,
    beginsAfter: () => memory.state.eventLogBeginsAfter,
    restart: (eventLogBeginsAfter) =>
      memory.change({ eventLog: generateEventLogId(entropy), eventLogBeginsAfter }),
  };
}
