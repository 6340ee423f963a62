import { basename } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, type SourceFile, sourceFiles } from './source-files.ts';

// Which room may open which door. `type x` is a door for types only. A new edge is a visible change of this table.
const doors: Record<string, string[]> = {
  main: ['cli'],
  cli: ['compose', 'config', 'package-root', 'start-error', 'pure', 'authorization'],
  compose: [
    'adapters',
    'config',
    'domain',
    'errors',
    'generated',
    'http',
    'jobs',
    'mock',
    'mocks',
    'package-root',
    // The self-test of the two secp256k1 backends, run at every start.
    'pure',
    'sandbox',
    'services',
    'start-error',
    'storage',
  ],
  config: ['config'],
  'package-root': [],
  'start-error': [],
  services: ['type generated', 'type services'],
  errors: ['generated'],
  http: ['errors', 'generated', 'type services', 'authorization', 'pure'],
  generated: ['handlers', 'type services'],
  handlers: ['domain', 'errors', 'type generated', 'type services'],
  domain: ['authorization', 'domain', 'errors', 'generated', 'pure', 'type services', 'storage'],
  authorization: ['type domain', 'errors', 'pure', 'type services', 'storage'],
  pure: ['pure'],
  storage: ['domain', 'storage'],
  jobs: ['domain', 'errors', 'type generated', 'type services', 'storage'],
  adapters: ['type services', 'start-error', 'pure'],
  sandbox: ['domain', 'errors', 'sandbox', 'type services'],
  mock: ['errors'],
  mocks: ['type generated'],
};

// Files of storage that domain verbs and the look-ups of authorization may use at run time; the others only give them types.
const storageForQueries = ['src/storage/is-unique-violation.ts', 'src/domain/prepared-query.ts'];

const pureFolders = ['policy', 'signing', 'crypto'];
const pureFiles = ['canonical-payload.ts', 'request-signatures.ts', 'quorum.ts'];

// What a pure room may take from outside: arithmetic on bytes, no file, no socket, no clock.
const purePackages =
  /^(@noble|@scure|@hpke|ox)\/|^(ox|secp256k1|ripple-binary-codec|canonicalize|lru-cache)$|^node:(crypto|util|module|assert|buffer)(\/|$)/;

// Packages with one room of their own.
const packageRooms: Record<string, string[]> = {
  express: ['http'],
  'openapi-backend': ['http'],
  'prom-client': ['http'],
  'rate-limiter-flexible': ['http'],
  commander: ['cli'],
  pino: ['adapters'],
  undici: ['adapters'],
  '@peculiar/x509': ['adapters'],
  // Simulated chains keep a file of their own, apart from the server's database.
  'better-sqlite3': ['adapters', 'storage'],
  pg: ['storage'],
};

const files = sourceFiles('src/**/*.ts', 'mocks/*.ts');

function roomOf(path: string): string {
  if (path.startsWith('mocks/')) return 'mocks';
  const [, first = '', ...rest] = path.split('/');
  const name = basename(path);
  if (rest.length === 0) return first.replace(/\.ts$/, '').replace(/^(config|services)-.*/, '$1');
  if (pureFolders.includes(first)) return 'pure';
  if (first === 'authorization') return pureFiles.includes(name) ? 'pure' : 'authorization';
  return first;
}

function isAllowed(file: SourceFile, target: string, isTypeOnly: boolean): boolean {
  const [from, to] = [roomOf(file.path), roomOf(target)];
  if ((from === 'domain' || from === 'authorization') && to === 'storage')
    return isTypeOnly || storageForQueries.includes(target);
  const allowed = doors[from] ?? [];
  return from === to || allowed.includes(to) || (isTypeOnly && allowed.includes(`type ${to}`));
}

test('every room of the source is in the table, and every room of the table exists', () => {
  const rooms = new Set(files.map((file) => roomOf(file.path)));
  // The generated files are read by the rooms that import them.
  const known = Object.keys(doors).filter((room) => room !== 'generated');
  expect([...rooms].sort()).toEqual(known.sort());
});

test('rooms import along the allowed edges only', () => {
  const forbidden = files.flatMap((file) =>
    importsOf(file)
      .filter(({ isOurs, target, isTypeOnly }) => isOurs && !isAllowed(file, target, isTypeOnly))
      .map(({ target, isTypeOnly }) => `${file.path} -> ${target}${isTypeOnly ? ' (type)' : ''}`),
  );
  expect(forbidden).toEqual([]);
});

test('packages are used in their own room only, and pure rooms do no I/O', () => {
  const forbidden = files.flatMap((file) => {
    const room = roomOf(file.path);
    return importsOf(file)
      .filter(({ isOurs }) => !isOurs)
      .filter(({ target, isTypeOnly }) => {
        if (room === 'pure' && !isTypeOnly) return !purePackages.test(target);
        return packageRooms[target]?.includes(room) === false;
      })
      .map(({ target }) => `${file.path} -> ${target}`);
  });
  expect(forbidden).toEqual([]);
});

test('entities import nothing but the ORM', () => {
  const forbidden = files
    .filter(({ path }) => path.endsWith('.entity.ts'))
    .flatMap((file) => importsOf(file).map(({ target }) => `${file.path} -> ${target}`))
    .filter((edge) => !edge.endsWith(' -> @mikro-orm/core'));
  expect(forbidden).toEqual([]);
});

test('nobody imports the intents, which call everybody', () => {
  const importers = files.filter(
    (file) =>
      !/^src\/(compose|handlers|jobs|storage)\/|^src\/domain\/intents\//.test(file.path) &&
      importsOf(file).some(
        ({ target, isTypeOnly }) => target.startsWith('src/domain/intents/') && !isTypeOnly,
      ),
  );
  expect(importers.map(({ path }) => path)).toEqual([]);
});

test('no file imports itself by a detour', () => {
  const edges = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ isOurs, isTypeOnly }) => isOurs && !isTypeOnly)
        .map(({ target }) => target),
    ]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const begin = trail.indexOf(path);
    if (begin !== -1) cycles.push([...trail.slice(begin), path].join(' -> '));
    if (begin !== -1 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  expect(cycles).toEqual([]);
});
