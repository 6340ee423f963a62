import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { fewArenas } from '../adapters/processes.ts';
import { StartError } from '../config/start-error.ts';
import type { SignerLink } from './signer-client.ts';

/** The command line of a signer, for a server and for `custos signer`. */
export interface SignerProgram {
  /** The entry point. */
  readonly entry: string;
  /** Readable paths: the code, and the files of the settings. */
  readonly readable: readonly string[];
  /** Writable path: the folder of the state, if there is one. */
  readonly writable?: readonly string[];
  /** The whole environment. Called at each start. */
  environment(): Record<string, string>;
}

function protectedProgram({ entry, readable, writable = [], environment }: SignerProgram) {
  return {
    args: [
      // No writes, no other files, no child processes, no threads, no debugger. Addons are allowed because the signing
      // library is native.
      '--permission',
      '--allow-addons',
      '--disable-warning=PERM0001',
      ...[...readable, ...writable].map((path) => `--allow-fs-read=${path}`),
      ...writable.map((path) => `--allow-fs-write=${path}`),
      // V8 lets the young generation grow up to 128 MB on large machines. The signer needs little.
      '--max-semi-space-size=16',
      // Otherwise a signal would start the debugger.
      '--disable-sigusr1',
      entry,
    ],
    env: { ...fewArenas, ...environment() },
  };
}

/** Replaces this process with a signer, so that its memory and environment are gone. */
export function replaceProcess(program: SignerProgram, args: readonly string[]): never {
  const { args: flags, env } = protectedProgram(program);
  if (process.execve === undefined) throw new StartError(`expected Node 24, got ${process.version}`);
  process.execve(process.execPath, [process.execPath, ...flags, ...args], env);
  throw new StartError('the signer cannot be started');
}

/** The descriptor of the channel in the child. */
export const CHANNEL = 3;

/** The time limit for a signer to end after its channel has closed. */
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
