import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../../src/config/package-root.ts';
import { temporaryFolder } from '../../support/run-custos.ts';

// The program beside a cache that cannot be used, under a user without rights. No cache may matter.

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;
const folder = temporaryFolder();
const cache = join(folder, 'dist', 'cache');

beforeAll(async () => {
  await run(process.execPath, [join(packageRoot(), 'codegen', 'build.ts')]);
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'dist'));
  copyFileSync(join(packageRoot(), 'package.json'), join(folder, 'package.json'));
  for (const name of ['custos.js', 'program.cjs']) {
    copyFileSync(join(packageRoot(), 'dist', name), join(folder, 'dist', name));
    chmodSync(join(folder, 'dist', name), 0o755);
  }
  // Node may be installed where only root can enter.
  try {
    linkSync(process.execPath, join(folder, 'node'));
  } catch {
    copyFileSync(process.execPath, join(folder, 'node'));
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The version that the program prints, with what Node says about its cache. */
async function start(env: Record<string, string>): Promise<string> {
  const { stdout, stderr } = await run(
    join(folder, 'node'),
    [join(folder, 'dist', 'custos.js'), '--version'],
    {
      env,
      ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
    },
  );
  return stdout + stderr;
}

const version = /^\d+\.\d+\.\d+\n$/;

test('a home folder that may not be entered, or none, does not matter', async () => {
  const home = join(folder, 'home');
  mkdirSync(home, { mode: 0o000 });
  chmodSync(join(folder, 'dist'), 0o555);
  expect(await start({ HOME: home })).toMatch(version);
  expect(await start({ HOME: home, XDG_CACHE_HOME: join(home, 'cache') })).toMatch(version);
  expect(await start({})).toMatch(version);
  expect(existsSync(cache)).toBe(false);
});

test('a cache of another user, or a file in its place, does not matter', async () => {
  chmodSync(join(folder, 'dist'), 0o755);
  mkdirSync(cache, { mode: 0o000 });
  expect(await start({})).toMatch(version);
  rmSync(cache, { recursive: true });
  writeFileSync(cache, '');
  expect(await start({})).toMatch(version);
  rmSync(cache);
});

test('compiled code is kept beside the program and used by the next start', async () => {
  chmodSync(join(folder, 'dist'), 0o777);
  expect(await start({})).toMatch(version);
  expect(readdirSync(cache)).toHaveLength(1);
  expect(await start({ NODE_DEBUG_NATIVE: 'COMPILE_CACHE' })).toMatch(/program\.cjs was accepted/);
});
