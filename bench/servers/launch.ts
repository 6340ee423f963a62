import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { credentials } from './credentials.ts';

export const root = join(import.meta.dirname, '..', '..');

/** Where a server answers, and as whom. */
export interface Address {
  readonly origin: string;
  readonly appId: string;
  readonly appSecret: string;
  readonly caPem?: string | undefined;
}

/** A server of a comparison, in a process of its own. */
export interface RunningServer extends Address {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Asks the process to end and waits until it has. */
  stop(): Promise<void>;
}

export interface LaunchOptions {
  /** After `node`. */
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
  /** Resolves when the server answers, with where that is. Asked again and again until then. */
  readonly ready: (child: ChildProcess) => Address | undefined | Promise<Address | undefined>;
}

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 12_000;
const running = new Set<ChildProcess>();
const temporaryFolders = new Set<string>();

// Whatever ends this process, no server and no file stays behind.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of temporaryFolders) rmSync(folder, { recursive: true, force: true });
});

/** Starts a process that is stopped with this one at the latest. */
function spawnNode(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
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
export async function launch({ args, env = {}, ready }: LaunchOptions): Promise<RunningServer> {
  const child = spawnNode(args, env);
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

/** Runs a program that ends by itself and returns what it printed; rejects when it fails. */
export async function runToEnd(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
  });
  return stdout;
}

/** Ends a process by its id, gently at first. */
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

/** A folder that is gone when this process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'custos-bench-'));
  temporaryFolders.add(folder);
  return folder;
}

/** Starts one of the programs in this folder, which tell over their channel where they listen. */
export function launchOwn(file: string, args: readonly string[] = []): Promise<RunningServer> {
  let told: string | undefined;
  let isListening = false;
  return launch({
    args: [join(import.meta.dirname, file), ...args],
    ready: (child) => {
      if (!isListening) child.on('message', (message: { origin?: string }) => (told ??= message.origin));
      isListening = true;
      return told === undefined ? undefined : { origin: told, ...credentials };
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
