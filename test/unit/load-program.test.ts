import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadScript, type ProgramPlace } from '../../src/load-program.ts';
import { waitFor } from '../support/run-custos.ts';

// A toy program. The published one is started by the tests of the commands.
const source =
  '(function(exports){ exports.double = (n) => 2 * n; exports.start = () => exports.double(21); })';

let root: string;
let place: ProgramPlace;
const folderOf = (name: string): string => join(root, name);
const caches = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.cache')) : [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'custos-load-'));
  mkdirSync(folderOf('program'));
  writeFileSync(join(folderOf('program'), 'program.cjs'), source);
  const env = { XDG_CACHE_HOME: folderOf('home') };
  place = { folder: folderOf('program'), hash: 'a1', part: 'server', env, execArgv: [], startedMs: 0 };
});
afterEach(() => rmSync(root, { recursive: true }));

/** Loads the toy, checks that it works, and says whether it had bytecode. */
function load(change: Partial<ProgramPlace> = {}): boolean {
  const { exports, hadBytecode } = loadScript({ ...place, ...change });
  expect((exports as { start(): number }).start()).toBe(42);
  return hadBytecode;
}

/** Loads the toy and waits for its bytecode, of which there is one file. */
async function keep(folder = folderOf('program'), change: Partial<ProgramPlace> = {}): Promise<string> {
  load(change);
  await waitFor(() => caches(folder).length === 1);
  return join(folder, caches(folder)[0] as string);
}

test('the second start has the bytecode of the first one', async () => {
  expect(load()).toBe(false);
  await waitFor(() => caches(folderOf('program')).length === 1);
  expect(load()).toBe(true);
});

test('bytecode is for one program and one part of it', async () => {
  await keep();
  expect(load({ hash: 'b2' })).toBe(false);
  expect(load({ part: 'commands' })).toBe(false);
  expect(load()).toBe(true);
});

test('starts with other flags keep bytecode of their own and leave that of the first', async () => {
  const file = await keep();
  const content = readFileSync(file);
  const flagged = { execArgv: ['--max-semi-space-size=8'] };
  expect(load(flagged)).toBe(false);
  await waitFor(() => caches(folderOf('program')).length === 2);
  expect(readFileSync(file).equals(content)).toBe(true);
  expect([load(flagged), load()]).toEqual([true, true]);
});

test('damaged and incomplete bytecode is not used, but replaced', async () => {
  const file = await keep();
  const content = readFileSync(file);
  for (const damaged of [
    content.subarray(0, -1),
    content.subarray(0, 3),
    content.map((byte, n) => (n === 99 ? byte ^ 1 : byte)),
  ]) {
    writeFileSync(file, damaged);
    expect(load()).toBe(false);
    // Not by its content: V8 may have dropped the code of a function meanwhile.
    await waitFor(() => !readFileSync(file).equals(damaged));
    expect(load()).toBe(true);
  }
});

test.skipIf(process.getuid === undefined)('bytecode that others can write is not used', async () => {
  const file = await keep();
  for (const mode of [0o664, 0o646]) {
    chmodSync(file, mode);
    expect(load()).toBe(false);
    await waitFor(() => (statSync(file).mode & 0o777) === 0o644);
  }
});

test.skipIf(process.getuid?.() !== 0)('bytecode of another user is not used', async () => {
  const file = await keep();
  chownSync(file, 65_534, 65_534);
  expect(load()).toBe(false);
  // But that of the owner of the program is.
  await waitFor(() => statSync(file).uid === 0);
  chownSync(file, 65_534, 65_534);
  chownSync(join(folderOf('program'), 'program.cjs'), 65_534, 65_534);
  expect(load()).toBe(true);
});

test.skipIf(process.getuid === undefined)('nothing is written to a folder of another user', async () => {
  if (process.getuid?.() === 0) chownSync(folderOf('program'), 65_534, 65_534);
  else chmodSync(folderOf('program'), 0o555);
  const own = join(folderOf('home'), 'custos');
  await keep(own);
  expect(statSync(own).mode & 0o777).toBe(0o700);
  expect(caches(folderOf('program'))).toEqual([]);
  expect(load()).toBe(true);
  chmodSync(folderOf('program'), 0o755);
});

test("Node's settings of its compile cache apply", async () => {
  const env = { NODE_COMPILE_CACHE: folderOf('elsewhere'), XDG_CACHE_HOME: folderOf('home') };
  await keep(folderOf('elsewhere'), { env });
  expect(load({ env })).toBe(true);
  const off = { ...env, NODE_DISABLE_COMPILE_CACHE: '1' };
  expect(load({ env: off })).toBe(false);
  expect(readdirSync(root).sort()).toEqual(['elsewhere', 'program']);
});

test('a folder keeps the latest twelve', async () => {
  for (let n = 0; n < 14; n += 1) {
    load({ hash: `a${n}` });
    await waitFor(() => caches(folderOf('program')).some((name) => name.includes(`-a${n}-`)));
  }
  expect(caches(folderOf('program'))).toHaveLength(12);
  expect(load({ hash: 'a13' })).toBe(true);
});

test('what a killed process has left of its bytecode is removed', async () => {
  const [left, begun] = ['program-0-x.cache.4711', 'program-0-x.cache.4712'].map((name) =>
    join(folderOf('program'), name),
  );
  for (const file of [left!, begun!]) writeFileSync(file, 'part');
  const anHourAgo = Date.now() / 1000 - 3600;
  utimesSync(left!, anHourAgo, anHourAgo);
  await keep(folderOf('program'));
  expect(existsSync(left!)).toBe(false);
  // Another process may be writing it.
  expect(existsSync(begun!)).toBe(true);
});
