import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { fewArenas } from '../processes/few-arenas.ts';
import type { SignerLink } from './signer-vault.ts';

/** How a signer is started. */
export interface SignerProgram {
  /** The file of its entry point. */
  readonly entry: string;
  /** What it may read: its code and the files of its settings. */
  readonly readable: readonly string[];
  /** Its whole environment. Called at each start. */
  environment(): Record<string, string>;
}

/** The descriptor of the channel in the child. */
export const CHANNEL = 3;

/** How long a signer may take to end after its channel has closed. */
const END_MS = 2_000;

/**
 * Starts a signer as a child. The channel is a pair of connected sockets, which no other process can open. It ends with this
 * process, and the child ends with it.
 */
export function spawnSigner({ entry, readable, environment }: SignerProgram): SignerLink {
  const child = spawn(
    process.execPath,
    [
      // No writing, no other files, no processes, no threads. The signing library is native.
      '--permission',
      '--allow-addons',
      '--disable-warning=PERM0001',
      ...readable.map((path) => `--allow-fs-read=${path}`),
      // V8 lets the young generation grow with the memory of the machine, to 128 MB. The signer needs little.
      '--max-semi-space-size=16',
      // A signal would open the debugger.
      '--disable-sigusr1',
      entry,
    ],
    { env: { ...fewArenas, ...environment() }, stdio: ['ignore', 'ignore', 'inherit', 'pipe'] },
  );
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  return {
    stream: channelOf(child),
    async end() {
      child.stdio[CHANNEL]?.destroy();
      const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function channelOf(child: ChildProcess): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    const channel = child.stdio[CHANNEL] as Duplex | undefined;
    if (channel) resolve(channel);
  });
}
