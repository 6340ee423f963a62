import { execFile } from 'node:child_process';
import { globSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isLong } from '../../figures/figure.ts';

const run = promisify(execFile);
const TIMEOUT_MS = 5 * 60_000;
const root = join(import.meta.dirname, '..', '..', '..');
export const clientsFolder = join(root, 'clients');

/** A client, and how its suite is run. */
export interface Language {
  readonly name: string;
  /** Why its tools or its packages are not here; undefined if they are. Installs what is missing. */
  readonly missing: () => Promise<string | undefined>;
  /** Generates and compiles the client. Failures are failures of the test. */
  readonly build: () => Promise<void>;
  /** The command of the runner, to which the arguments of a run are added. */
  readonly runner: readonly [command: string, ...args: string[]];
}

/** Runs a command in the folder of a client. Its output is in the message of the error. */
async function runIn(folder: string, command: string, ...args: string[]): Promise<string> {
  const cwd = join(clientsFolder, folder);
  // `NODE_OPTIONS` loads the ledger.
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { stdout } = await run(command, args, { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 1 << 26 }).catch(
    (error: Error & { stdout: string; stderr: string }) => {
      throw new Error(`${command} ${args.join(' ')} in clients/${folder}: ${error.stderr}${error.stdout}`);
    },
  );
  return stdout;
}

/** When a file of a client was written, 0 if it is missing. */
function timeOf(...path: string[]): number {
  return statSync(join(clientsFolder, ...path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Runs `work` while no other test file does: two of them install and build the same client, which only the first pays. */
async function alone<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
  const lock = join(clientsFolder, folder, '.preparing');
  for (;;) {
    // A run that was killed has left a lock of more than ten minutes.
    if (timeOf(folder, '.preparing') + 2 * TIMEOUT_MS < Date.now())
      rmSync(lock, { recursive: true, force: true });
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      await pause(250);
    }
  }
  return work().finally(() => rmSync(lock, { recursive: true, force: true }));
}

const typescript: Language = {
  name: 'typescript',
  missing: () =>
    alone('typescript', async () => {
      if (timeOf('typescript/node_modules/.package-lock.json') >= timeOf('typescript/package-lock.json'))
        return undefined;
      return reasonOf(runIn('typescript', 'npm', 'ci', '--no-audit', '--no-fund'));
    }),
  build: () =>
    alone('typescript', async () => {
      const inputs = globSync('{src,scripts}/*.{ts,js}', { cwd: join(clientsFolder, 'typescript') });
      const written = ['package-lock.json', 'tsconfig.json', '../../openapi/openapi.json', ...inputs];
      const newest = Math.max(...written.map((path) => timeOf('typescript', path)));
      if (newest < timeOf('typescript/dist/client.js')) return;
      await runIn('typescript', process.execPath, 'scripts/generate.js');
      await runIn('typescript', process.execPath, 'node_modules/typescript/bin/tsc', '-p', '.');
    }),
  runner: [process.execPath, join(clientsFolder, 'typescript', 'run-suite.ts')],
};

const python: Language = {
  name: 'python',
  missing: () =>
    reasonOf(runIn('python', './generate', '--only-install', ...(isLong ? ['--with-tests'] : []))),
  build: async () => void (await runIn('python', './generate', '--if-changed')),
  runner: [join(clientsFolder, 'python/.venv/bin/python'), join(clientsFolder, 'python/suite.py')],
};

const go: Language = {
  name: 'go',
  missing: () =>
    reasonOf(
      runIn('go', 'go', 'mod', 'download').then(() =>
        runIn('go', 'go', '-C', 'internal/generate', 'mod', 'download'),
      ),
    ),
  build: () =>
    alone('go', async () => {
      await runIn('go', 'go', 'generate');
      await runIn('go', 'go', 'build', '-o', 'bin/suite', './cmd/suite');
    }),
  runner: [join(clientsFolder, 'go/bin/suite')],
};

/** The message of a failure; undefined if there is none. */
async function reasonOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: Error) => error.message,
  );
}

export const languages: readonly Language[] = [typescript, python, go];
