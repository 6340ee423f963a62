import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

// What only tests and checks need, such as libraries to compare with and PostgreSQL, has a lock of its own,
// `test/package-lock.json`, so that `npm ci` at the root stays small. They are in `test/node_modules`, where Node finds them for every file of `test/`.

const folder = import.meta.dirname;
const TIMEOUT_MS = 10 * 60_000;

/** Vitest calls it before the tests, `npm run check` before the compiler. Does nothing if they are installed. */
export function setup(): void {
  if (timeOf('node_modules/.package-lock.json') >= timeOf('package-lock.json')) return;
  process.stderr.write('installing what only tests need (test/package-lock.json), once\n');
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    ...{ cwd: folder, stdio: 'inherit', timeout: TIMEOUT_MS },
    // `npm.cmd` on Windows
    shell: process.platform === 'win32',
  });
  if (error !== undefined || status !== 0)
    throw new Error('`npm ci` in test/ failed; without its libraries the tests cannot run', { cause: error });
}

function timeOf(path: string): number {
  return statSync(join(folder, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (import.meta.main) setup();
