import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { fewArenas } from '../adapters/processes.ts';
import { StartError } from '../config/start-error.ts';
import type { SignerLink } from './signer-client.ts';

/** How a signer is started, by a server or by `custos signer`. */
export interface SignerProgram {
  /** The file of its entry point. */
  readonly entry: string;
  /** What it may read: its code and the files of its settings. */
  readonly readable: readonly string[];
  /** What it may write: the folder of its state, if it has one. */
  readonly writable?: readonly string[];
  /** Its whole environment. Called at each start. */
  environment(): Record<string, string>;
}

/** The flags and the environment of every signer. */
function protectedProgram({ entry, readable, writable = [], environment }: SignerProgram) {
  return {
    args: [
      // No writing, no other files, no processes, no threads, no debugger. The signing library is native.
      '--permission',
      '--allow-addons',
      '--disable-warning=PERM0001',
      ...[...readable, ...writable].map((path) => `--allow-fs-read=${path}`),
      ...writable.map((path) => `--allow-fs-write=${path}`),
      // V8 lets the young generation grow with the memory of the machine, to 128 MB. The signer needs little.
      '--max-semi-space-size=16',
      // A signal would open the debugger.
      '--disable-sigusr1',
      entry,
    ],
    env: { ...fewArenas, ...environment() },
  };
}

/** Replaces this process by a signer. Its memory and its environment are gone then, so that nothing of them is left. */
export function replaceProcess(program: SignerProgram, args: readonly string[]): never {
  const { args: flags, env } = protectedProgram(program);
  if (process.execve === undefined) throw new StartError(`expected Node 24, got ${process.version}`);
  process.execve(process.execPath, [process.execPath, ...flags, ...args], env);
  throw new StartError('the signer cannot be started');
}

/** The descriptor of the channel in the child. */
export const CHANNEL = 3;

/** How long a signer may take to end after its channel has closed. */
const END_MS = 2_000;

/**
 * Starts a signer as a child. The channel is a pair of connected sockets, which no other process can open. It ends with this
 * process, and the child ends with it.
 */
export function spawnSigner(program: SignerProgram): SignerLink {
  const { args, env } = protectedProgram(program);
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
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
