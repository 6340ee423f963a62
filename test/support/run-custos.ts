import { type ChildProcess, execFile, type StdioOptions, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, promisify } from 'node:util';
import { Agent, type Dispatcher } from 'undici';
import { runCommandLine } from '../../src/cli/program.ts';
import { isLong } from '../figures/figure.ts';
import { endWithFile } from './processes/left-over.ts';

const root = join(import.meta.dirname, '..', '..');
const program = join(root, 'dist', 'custos.js');
let built: Promise<unknown> | undefined;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  /** Variables that are added to an environment without Custos settings. */
  readonly env?: Record<string, string>;
  /** The folder in which the process runs. Default: that of the tests. */
  readonly cwd?: string;
  /** Command line options of Node. */
  readonly nodeOptions?: readonly string[];
  /** The standard streams of the process. Default: pipes. */
  readonly stdio?: StdioOptions;
}

/** Runs a command until it ends. */
export async function runCustos(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = await start(args, options);
  const output = collect(child);
  return { code: await ended(child), ...output() };
}

/** The content of the ready file. */
interface Ready {
  readonly base_url: string;
  readonly app_id: string;
  readonly app_secret: string;
  readonly ca_file: string;
  readonly pid: number;
  readonly admin_url?: string;
}

/** A server in a separate process. */
export interface ServingCustos extends StartedCustos, AsyncDisposable {
  readonly ready: Ready;
  readonly readyFile: string;
  /** Calls the server with the app's credentials. It trusts only the server's authority. */
  call<Body>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Called<Body>>;
}

interface Called<Body> {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly text: string;
  readonly body: Body;
}

/** A running command. */
export interface StartedCustos {
  readonly process: ChildProcess;
  /** Returns the output so far. */
  output(): { readonly stdout: string; readonly stderr: string };
  /** Waits for the end of the command. */
  ended(): Promise<Finished>;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Finished>;
}

/** Starts a command without waiting for its end. */
export async function startCustos(args: readonly string[], options: RunOptions = {}): Promise<StartedCustos> {
  const child = await start(args, options);
  const output = collect(child);
  const end = ended(child);
  const finished = async (): Promise<Finished> => ({ code: await end, ...output() });
  return {
    process: child,
    output,
    ended: finished,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal);
      return finished();
    },
  };
}

/** Starts a server command on a free port, and waits until it is ready. */
export async function serveCustos(args: readonly string[], options: RunOptions = {}): Promise<ServingCustos> {
  const folder = temporaryFolder();
  const readyFile = join(folder, 'ready.json');
  // Most tests create only a few wallets.
  const unprepared =
    args[0] === 'sandbox' && !args.includes('--prepared-keys') ? ['--prepared-keys', '0'] : [];
  const custos = await startCustos(
    [...args, ...unprepared, '--port', '0', '--ready-file', readyFile],
    options,
  );
  await waitFor(() => existsSync(readyFile) || custos.process.exitCode !== null).catch((cause: unknown) => {
    custos.process.kill('SIGKILL');
    throw new Error(`custos is not ready: ${JSON.stringify(custos.output())}`, { cause });
  });
  if (!existsSync(readyFile)) throw new Error(`custos ended: ${(await custos.ended()).stderr}`);
  const ready = JSON.parse(readFileSync(readyFile, 'utf8')) as Ready;
  const prefix = args.includes('--prefix') ? args[args.indexOf('--prefix') + 1] : 'service';
  const agent = new Agent({ connect: { ca: readFileSync(ready.ca_file, 'utf8') } });

  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<Finished> => {
    const finished = await custos.stop(signal);
    await agent.destroy();
    rmSync(folder, { recursive: true, force: true });
    return finished;
  };
  return {
    ...custos,
    ready,
    readyFile,
    stop,
    async call(method, path, body, headers) {
      const response = await agent.request({
        origin: ready.base_url,
        path,
        method: method as Dispatcher.HttpMethod,
        headers: {
          authorization: `Basic ${Buffer.from(`${ready.app_id}:${ready.app_secret}`).toString('base64')}`,
          [`${prefix}-app-id`]: ready.app_id,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.body.text();
      const parsed = text === '' ? undefined : JSON.parse(text);
      return { status: response.statusCode, headers: response.headers, text, body: parsed };
    },
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

/** A new empty folder. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'custos-test-'));
}

/** Runs the published bundle, which is built first if necessary. */
async function start(
  args: readonly string[],
  { env = {}, cwd, nodeOptions = [], stdio = 'pipe' }: RunOptions,
): Promise<ChildProcess> {
  built ??= promisify(execFile)(process.execPath, [join(root, 'codegen', 'build.ts')]);
  await built;
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('CUSTOS_') && name !== 'DATABASE_URL',
  );
  const child = spawn(process.execPath, [...nodeOptions, program, ...args], {
    env: { ...Object.fromEntries(own), ...env },
    ...{ cwd, stdio },
  });
  // A failing test must not leave a server behind.
  endWithFile(child);
  return child;
}

function collect(child: ChildProcess): () => { stdout: string; stderr: string } {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout?.on('data', (chunk: Buffer) => chunks.stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => chunks.stderr.push(chunk));
  return () => ({
    stdout: Buffer.concat(chunks.stdout).toString('utf8'),
    stderr: Buffer.concat(chunks.stderr).toString('utf8'),
  });
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('close', (code) => resolve(code)));
}

/** Long runs may share the machine with other programs. */
const START_MS = isLong ? 300_000 : 60_000;

/** Waits. The default limit is the time that a start may take. */
export async function waitFor(condition: () => boolean, limitMs = START_MS): Promise<void> {
  const untilMs = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > untilMs) throw new Error(`timed out after ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

let isRunning = false;

/**
 * Runs a command in this process until it ends. It works like `runCustos`, but saves the time for starting a process.
 * It is for commands that end by themselves, one at a time.
 */
export async function runCommand(args: readonly string[], { env = {} }: RunOptions = {}): Promise<Finished> {
  if (isRunning) throw new Error('expected one command at a time in this process');
  isRunning = true;
  const before = { env: settingsIn(process.env), exitCode: process.exitCode };
  const [out, err] = [capture(process.stdout, 'log'), capture(process.stderr, 'error')];
  try {
    replaceSettings(env);
    process.exitCode = undefined;
    const code = await runCommandLine(args);
    return { code: Number(process.exitCode ?? code), stdout: out.text(), stderr: err.text() };
  } finally {
    out.restore();
    err.restore();
    replaceSettings(before.env);
    process.exitCode = before.exitCode;
    isRunning = false;
  }
}

function settingsIn(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[0].startsWith('CUSTOS_') || entry[0] === 'DATABASE_URL',
    ),
  );
}

function replaceSettings(settings: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(settingsIn(process.env))) delete process.env[name];
  Object.assign(process.env, settings);
}

/** Captures everything that is written to a stream, and to the console method that belongs to it. */
function capture(stream: NodeJS.WriteStream, method: 'log' | 'error') {
  const { console: printer } = globalThis;
  const chunks: string[] = [];
  const before = { write: stream.write, print: printer[method] };
  stream.write = ((chunk: string | Uint8Array) => {
    chunks.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    return true;
  }) as typeof stream.write;
  printer[method] = (...values: unknown[]) => void chunks.push(`${format(...values)}\n`);
  return {
    text: () => chunks.join(''),
    restore() {
      stream.write = before.write;
      printer[method] = before.print;
    },
  };
}
