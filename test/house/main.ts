import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import * as wallets from '../../src/api/wallets.ts';
import { startSandbox, type TestSandbox } from '../../src/testing/testing.ts';
import { nestedSteps } from './nested-steps.ts';
import { startServing } from './serving.ts';
import { root, sourceFiles, withoutComments } from './source-files.ts';

// npm run house: the size of the house, and what of it a request enters. With --list it prints the files, each
// with the functions that ran.

const files = sourceFiles('src/**/*.{ts,tsx}').filter(({ path }) => !path.includes('/generated/'));

const lists = process.argv.includes('--list');
/** Calls whose files are compared. */
const MEASURED = 100;

interface Row {
  readonly what: string;
  readonly value: number;
  readonly most: number;
  /** Why more is accepted than the house aims at. */
  readonly why?: string;
}

/** Calls of the database by what is not storage, by whether the entity manager or Kysely makes the statement. */
const ofEntityManager =
  /\bem\s*\.(find|findOne|findOneOrFail|count|create|insert|insertMany|upsert|nativeUpdate|nativeDelete|remove)\(|\bfindPage\(/g;
const ofKysely = /\bgetKysely\b|\bprepare(Query|QueryOfIds|InsertPair)\s*[<(]/g;
const outside = files.filter(({ path }) => !path.startsWith('src/storage/'));
const bypassing = places(ofKysely, outside);
const allCalls = bypassing + places(ofEntityManager, outside);

const session = new Session();
session.connect();
await session.post('Profiler.enable');
const serving = await startServing();
const enteredBy = { createWallet: await entered(serving.createWallet), sign: await entered(serving.sign) };
await serving.close();
const sandbox = await startSandbox();

const rows: Row[] = [
  { what: 'files in src, generated ones aside', value: files.length, most: 1_000 },
  { what: 'rooms', value: new Set(files.map(({ path }) => path.split('/')[1])).size, most: 25 },
  { what: 'files of `custos serve` that createWallet enters', value: enteredBy.createWallet, most: 60 },
  {
    what: 'files of `custos serve` that an owned personal_sign enters, without those of its signer',
    value: enteredBy.sign,
    most: 78,
    why: 'aim 60: 52 of them, server and storage, are those of every change, and the owner, the use log and the policies are subjects of their own',
  },
  {
    what: 'nested steps before the handler of getWallet',
    value: await nested(wallets.getWallet, () =>
      sandbox.call('getWallet', { path: { wallet_id: 'ext_wal_alice' } }),
    ),
    most: 6,
  },
  {
    what: 'nested steps before the handler of createWallet',
    value: await nested(wallets.createWallet.run, () =>
      sandbox.call('createWallet', { body: { chain_type: 'ethereum' } }),
    ),
    most: 6,
  },
  {
    what: 'nested steps before the handler of walletRpc',
    value: await nested(wallets.walletRpc.run, () => sign(sandbox)),
    most: 6,
  },
  { what: 'casts by `as unknown as`', value: places(/ as unknown as /g), most: 0 },
  { what: '`instanceof Promise`', value: places(/instanceof Promise\b/g), most: 1 },
  // These two may only fall: lower the limit with the count.
  { what: 'calls of the database through Kysely', value: bypassing, most: 208 },
  {
    what: 'of 100 calls of the database, those through Kysely',
    value: Math.round((100 * bypassing) / allCalls),
    most: 37,
  },
  { what: 'packages that `npm ci` installs', value: installed(), most: 330 },
  { what: 'MB in node_modules', value: megabytesOf(join(root, 'node_modules')), most: 600 },
];
await sandbox.close();

for (const { what, value, most, why } of rows) {
  const limit = why === undefined ? `at most ${most}` : `at most ${most}; ${why}`;
  process.stdout.write(`${value > most ? '✗' : '✓'} ${String(value).padStart(5)}  ${what} (${limit})\n`);
}
if (rows.some(({ value, most }) => value > most)) process.exitCode = 1;

/** How many files of src run in every one of several calls, after two that load what is loaded lazily. */
async function entered(work: () => Promise<unknown>): Promise<number> {
  await work();
  await work();
  let entering = await filesEntered(work);
  for (let again = 1; again < MEASURED; again += 1) {
    const more = await filesEntered(work);
    // A job that happens to run at the same time enters files, too, but not in every call.
    entering = new Map([...entering].filter(([path]) => more.has(path)));
  }
  if (lists) for (const [path, ran] of entering) process.stdout.write(`${path}: ${ran.join(', ')}\n`);
  return entering.size;
}

/** The files of which some function runs during a call, in alphabetical order, with these functions. */
async function filesEntered(work: () => Promise<unknown>): Promise<Map<string, string[]>> {
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  const prefix = `file://${root.replace(/\/$/, '')}/`;
  const ours = result.filter(
    ({ url }) => url.startsWith(`${prefix}src/`) && !/\/src\/(testing|tools|generated)\//.test(url),
  );
  const files = ours.map(({ url, functions }): [string, string[]] => {
    const ran = functions.filter(
      ({ functionName, ranges }) => functionName !== '' && ranges.some(({ count }) => count > 0),
    );
    return [url.slice(prefix.length), ran.map(({ functionName }) => functionName)];
  });
  return new Map(files.filter(([, ran]) => ran.length > 0).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** How many functions are around the handler during a call. */
async function nested(handler: unknown, work: () => Promise<unknown>): Promise<number> {
  await work();
  const steps = await nestedSteps(handler, work);
  if (lists) process.stdout.write(`${steps.join('\n')}\n\n`);
  return steps.length;
}

async function sign(server: TestSandbox): Promise<unknown> {
  return server.as(aliceKey).call('walletRpc', {
    path: { wallet_id: 'ext_wal_alice' },
    body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
  });
}

function places(pattern: RegExp, among = files): number {
  return among.reduce((sum, { text }) => sum + (withoutComments(text).match(pattern)?.length ?? 0), 0);
}

/** What the files of installed packages take on the disk. Caches of tools, whose names begin with a dot, do not count. */
function megabytesOf(folder: string): number {
  const inodes = new Set<number>();
  let bytes = 0;
  const visit = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) {
        if (path !== folder || !entry.name.startsWith('.')) visit(inside);
        continue;
      }
      const { ino, blocks } = lstatSync(inside);
      if (inodes.has(ino)) continue;
      inodes.add(ino);
      bytes += blocks * 512;
    }
  };
  visit(folder);
  return Math.round(bytes / 1024 ** 2);
}

/** Packages of the lock file, without those for other platforms. */
function installed(): number {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { optional?: boolean; os?: string[]; cpu?: string[] }>;
  };
  return Object.entries(lock.packages).filter(([path, { os, cpu }]) => {
    const isOfPlatform = (names: string[] | undefined, own: string): boolean =>
      names === undefined || names.includes(own);
    return path !== '' && isOfPlatform(os, process.platform) && isOfPlatform(cpu, process.arch);
  }).length;
}
