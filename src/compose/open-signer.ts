import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { logOf } from '../adapters/log.ts';
import { ConfigError, type ServeConfig } from '../config/config.ts';
import { packageRoot } from '../config/package-root.ts';
import type { OwnSignerSettings, SignerSettings } from '../config/signer.ts';
import { StartError } from '../config/start-error.ts';
import { namedContracts } from '../engine/authorization/requested/built-part.ts';
import { openSignerKeyStore, type SignerKeyStore, type SignerLink } from '../keys/signer-client.ts';
import { connectToSocket } from '../keys/signer-connection.ts';
import { SignerRefusedError } from '../keys/signer-errors.ts';
import { replaceProcess, type SignerProgram, spawnSigner } from '../keys/spawn-signer.ts';

type OwnSettings = Pick<ServeConfig, 'signer' | 'logLevel' | 'swapRouters' | 'rewards'>;

/**
 * Starts the signer of a production server, or connects to it.
 *
 * @param waitMs how long to wait for `custos signer`.
 * @throws ConfigError if the signer rejects its settings.
 * @throws StartError if the signer cannot be reached.
 */
export async function openSigner(
  { signer: settings, ...config }: OwnSettings,
  waitMs = SIGNER_START_MS,
): Promise<SignerKeyStore> {
  const log = logOf(config);
  const { swapRouters, rewards } = config;
  const contracts = namedContracts({ swapRouters, rewardDistributors: rewards.distributors });
  if (settings.kind === 'child' && settings.exposed.length > 0) {
    const variables = settings.exposed.join(', ');
    log.warn({ variables }, 'secrets in the environment stay in the memory of this process; use files');
  }
  const untilMs = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await openSignerKeyStore(() => linkTo(settings), { log, contracts });
    } catch (error) {
      if (error instanceof SignerRefusedError)
        throw new ConfigError('the server cannot start with these settings:', error.faults);
      if (settings.kind === 'child' || !isNotListening(error)) throw error;
      if (performance.now() >= untilMs) {
        const message = `expected a signer at \`${settings.path}\` within ${waitMs / 1000} s, none listened`;
        throw new StartError(`${message}; start \`custos signer\` first`, { cause: error });
      }
      if (isFirst) log.warn({ socket: settings.path }, 'no signer listens yet; waiting for it');
      await pause(RETRY_MS);
    }
  }
}

/** CHOICE: how long the server waits at its start for `custos signer`, which may be starting at the same time. */
const SIGNER_START_MS = 60_000;
const RETRY_MS = 250;

/**
 * Returns whether nothing listens on the socket yet. A socket that other users can open, or that belongs to another
 * user, is an error without waiting.
 */
function isNotListening(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ECONNREFUSED';
}

function linkTo(settings: SignerSettings): SignerLink {
  if (settings.kind === 'socket') {
    return connectToSocket({ path: settings.path, uid: settings.uid ?? process.getuid?.() ?? -1 });
  }
  return spawnSigner(programOf(settings));
}

/**
 * Replaces this process with a signer that may write to its state folder. `args` are the arguments of the signer's
 * entry point.
 */
export function becomeSigner(settings: OwnSignerSettings, state: string, args: readonly string[]): never {
  return replaceProcess({ ...programOf(settings), writable: [state] }, args);
}

/** Returns the program that runs the signer with these settings. */
function programOf(settings: OwnSignerSettings): SignerProgram {
  return {
    entry: entryOf(packageRoot()),
    readable: [packageRoot(), ...settings.files],
    environment: settings.environment,
  };
}

/** Returns the entry file, in the bundle or in the source tree. */
function entryOf(root: string): string {
  const isBundle = import.meta.dirname.startsWith(join(root, 'dist'));
  return isBundle ? join(root, 'dist', 'signer.js') : join(root, 'src', 'keys', 'signer-main.ts');
}
