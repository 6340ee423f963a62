import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { fewArenas } from '../adapters/processes.ts';
import { StartError } from '../config/start-error.ts';
import type { SignerLink } from './signer-client.ts';

/** What starts a signer: as a child of the server, or for `custos signer`. */
export interface SignerProgram {
  /** The path of the script to run. */
  readonly entry: string;
  /** The paths that it may read: the code, and the files that its settings name. */
  readonly readable: readonly string[];
  /** The paths that it may write: the folder of its state, if it has one. Default: none. */
  readonly writable?: readonly string[];
  /** Returns the whole environment of the process. Called at each start. */
  environment(): Record<string, string>;
}

function protectedProgram({ entry, readable, writable = [], environment }: SignerProgram) {
  return {
    args: [
      // Forbid writes, other files, child processes, threads and a debugger. Addons are allowed, because the signing
      // library is native.
      '--permission',
      '--allow-addons',
      '--disable-warning=PERM0001',
      ...[...readable, ...writable].map((path) => `--allow-fs-read=${path}`),
      ...writable.map((path) => `--allow-fs-write=${path}`),
      // V8 would let the young generation grow up to 128 MB on large machines. The signer needs little.
      '--max-semi-space-size=16',
      // Without this flag, a signal would start the debugger.
      '--disable-sigusr1',
      entry,
    ],
    env: { ...fewArenas, ...environment() },
  };
}

/**
 * Replaces this process with a signer, so that nothing of its memory and environment is left.
 *
 * @throws StartError when the process cannot be replaced.
 */
export function replaceProcess(program: SignerProgram, args: readonly string[]): never {
  const { args: flags, env } = protectedProgram(program);
  if (process.execve === undefined) throw new StartError(`expected Node 24, got ${process.version}`);
  process.execve(process.execPath, [process.execPath, ...flags, ...args], env);
  throw new StartError('the signer cannot be started');
}

/** The file descriptor of the channel in the child. */
export const CHANNEL = 3;

/** How long the signer may take to end after its channel has closed, before it is killed. */
const END_MS = 2_000;

/**
 * Starts a signer as a child process. The channel is a pair of connected sockets, which no other process can open. The
 * child ends when this process ends.
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
