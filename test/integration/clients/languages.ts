import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isLong } from '../../figures/figure.ts';

const run = promisify(execFile);
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
  const { stdout } = await run(command, args, { cwd, timeout: 300_000, maxBuffer: 64 * 1024 * 1024 }).catch(
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

const typescript: Language = {
  name: 'typescript',
  async missing() {
    if (timeOf('typescript/node_modules/.package-lock.json') >= timeOf('typescript/package-lock.json'))
      return undefined;
    return runIn('typescript', 'npm', 'ci', '--no-audit', '--no-fund').then(
      () => undefined,
      (error: Error) => `\`npm ci\` failed: ${error.message}`,
    );
  },
  async build() {
    await runIn('typescript', process.execPath, 'scripts/generate.ts');
    await runIn('typescript', process.execPath, 'node_modules/typescript/bin/tsc', '-p', '.', '--noEmit');
  },
  runner: [process.execPath, join(clientsFolder, 'typescript', 'run-suite.ts')],
};

const python: Language = {
  name: 'python',
  missing: () => reasonOf(runIn('python', './generate', '--only-install', ...(isLong ? ['--with-eth'] : []))),
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
  async build() {
    await runIn('go', 'go', 'generate');
    await runIn('go', 'go', 'build', '-o', 'bin/suite', './cmd/suite');
  },
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
