import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { credentials } from './credentials.ts';

export const root = join(import.meta.dirname, '..', '..');

/** The address and credentials of a server. */
export interface Address {
  readonly origin: string;
  readonly appId: string;
  readonly appSecret: string;
  readonly caPem?: string | undefined;
  /** Whether requests are sent as a proxy that terminates TLS forwards them. */
  readonly isBehindProxy?: boolean | undefined;
}

/** A compared server in its own process. */
export interface RunningServer extends Address {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Asks the process to end and waits for it. */
  stop(): Promise<void>;
}

export interface LaunchOptions {
  /** After `node`. */
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
  /** The server's address once it is ready; undefined before. Polled. */
  readonly ready: (child: ChildProcess) => Address | undefined | Promise<Address | undefined>;
}

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 12_000;
const running = new Set<ChildProcess>();
const temporaryFolders = new Set<string>();

// However this process ends, no server and no file is left behind.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of temporaryFolders) rmSync(folder, { recursive: true, force: true });
});

/** Starts a process that ends with this one at the latest. */
function spawnNode({ args, env = {} }: Pick<LaunchOptions, 'args' | 'env'>): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Starts a server and waits until it answers. */
export async function launch({ args, ready, ...how }: LaunchOptions): Promise<RunningServer> {
  const child = spawnNode({ args, ...how });
  let complaint = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    if (complaint.length < 4000) complaint += chunk.toString('utf8');
  });
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const address = await ready(child);
    if (address !== undefined)
      return { ...address, pid: child.pid as number, child, stop: () => stop(child) };
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      await stop(child);
      throw new Error(`the server \`node ${args.join(' ')}\` did not come up: ${complaint.trim()}`);
    }
    await wait(10);
  }
}

/** Runs a program to its end and returns its output; rejects when it fails. */
export async function runToEnd(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
  });
  return stdout;
}

/** Ends a process: SIGTERM first, then SIGKILL. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  await ended;
  clearTimeout(timer);
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** A folder that is deleted when this process ends. */
export function temporaryFolder(within = tmpdir()): string {
  const folder = mkdtempSync(join(within, 'custos-bench-'));
  temporaryFolders.add(folder);
  return folder;
}

/** Starts one of the programs in this folder, which report their address over IPC. */
export function launchOwn(file: string, args: readonly string[] = []): Promise<RunningServer> {
  let origin: string | undefined;
  let isListening = false;
  return launch({
    args: [join(import.meta.dirname, file), ...args],
    ready: (child) => {
      if (!isListening) child.on('message', (message: { origin?: string }) => (origin ??= message.origin));
      isListening = true;
      return origin === undefined ? undefined : { origin, ...credentials };
    },
  });
}

/** The command line of Prism on the same document. */
export function prismArguments(port: number): string[] {
  const program = join('bench', 'node_modules', '@stoplight', 'prism-cli', 'dist', 'index.js');
  return [
    program,
    'mock',
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-v',
    'silent',
    join('openapi', 'openapi.json'),
  ];
}

/** Starts Prism with its log off. */
export async function launchPrism(): Promise<RunningServer> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  return launch({
    args: prismArguments(port),
    ready: async () => {
      const isUp = await fetch(origin).then(
        () => true,
        () => false,
      );
      return isUp ? { origin, ...credentials } : undefined;
    },
  });
}
