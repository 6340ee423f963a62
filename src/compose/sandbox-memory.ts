import { existsSync, mkdirSync } from 'node:fs';
import { acmeApp } from '../../mocks/apps.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import {
  databaseOf,
  generateEventLogId,
  generateMasterKeyHex,
  lockOf,
  readSandboxState,
  type SandboxState,
  writeSandboxState,
} from '../adapters/sandbox-folder.ts';
import type { SandboxConfig } from '../config.ts';
import { drawAppSecret } from '../domain/access/apps/app-secret.ts';
import { isLoopbackHost } from '../http/origins/local-caller.ts';
import { StartError } from '../start-error.ts';
import { lockFile } from '../storage/lock-file.ts';

/** The state of a sandbox that is kept between starts. */
export interface SandboxMemory {
  readonly state: SandboxState;
  /** Stores the state of this start. Call it after the database has accepted the master key. */
  keep(): void;
  /** Releases the folder. */
  release(): void;
}

/**
 * Reads the state in the folder and locks the folder; options override the state.
 *
 * INVARIANT: a stored master key is never replaced. A new one is stored only in a folder without a database, or after
 * the database has accepted it.
 *
 * @throws StartError when another sandbox uses the folder, or its state cannot be read.
 */
export function openMemory(config: SandboxConfig): SandboxMemory {
  const { dataFolder: folder } = config;
  if (folder === undefined) {
    return { state: stateOf(config, undefined), keep: () => undefined, release: () => undefined };
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = lockFile(lockOf(folder));
  if ('heldBy' in lock) {
    throw new StartError(
      `another sandbox (process ${lock.heldBy}) uses \`${folder}\`; stop it, or choose another folder with --data`,
    );
  }
  try {
    const kept = readSandboxState(folder);
    const state = stateOf(config, kept);
    const keep = (): void => writeSandboxState(folder, state);
    if (kept === undefined && !existsSync(databaseOf(folder))) keep();
    return { state, keep, release: lock.release };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function stateOf(config: SandboxConfig, kept: SandboxState | undefined): SandboxState {
  return {
    appId: config.appId ?? kept?.appId ?? acmeApp.id,
    appSecret: config.appSecret ?? appSecretFor(config.host, kept),
    masterKeyHex: kept?.masterKeyHex ?? generateMasterKeyHex(systemEntropy),
    starts: (kept?.starts ?? 0) + 1,
    eventLog: kept?.eventLog ?? generateEventLogId(systemEntropy),
  };
}

/**
 * CHOICE: only a sandbox that is reachable from this machine alone has the published secret. Any other gets a random
 * one, even with a seed, because others may know the seed.
 */
function appSecretFor(host: string, kept: SandboxState | undefined): string {
  const secret = kept?.appSecret ?? acmeApp.secret;
  return secret === acmeApp.secret && !isLoopbackHost(host) ? drawAppSecret(systemEntropy) : secret;
}
