import { expect, test } from 'vitest';
import { importsOf, type SourceFile, sourceFiles } from './source-files.ts';

// Which module may import which. `type x` allows type imports only. A new edge is a visible change of this table.
const allowedImports: Record<string, string[]> = {
  main: ['cli'],
  cli: ['adapters', 'admin', 'compose', 'config', 'engine', 'keys', 'tools'],
  compose: [
    'adapters',
    'admin',
    'config',
    'domain',
    'engine',
    'errors',
    'generated',
    'jobs',
    'keys',
    'mocks',
    'observability',
    'type ports',
    'registry',
    'sandbox',
    'server',
    'simulated',
    'storage',
    'tools',
  ],
  admin: [
    'adapters',
    'config',
    'domain',
    'engine',
    'errors',
    'generated',
    'keys',
    'type observability',
    'type ports',
    'sandbox',
    'server',
    'storage',
    'tools',
  ],
  // Users' tests call it; it is a client of a sandbox that it starts in their process.
  testing: ['compose', 'config', 'engine', 'generated', 'mocks', 'type sandbox', 'server', 'tools'],
  // `mocks` has the app and the users' keys that every sandbox has.
  tools: ['adapters', 'config', 'type domain', 'engine', 'errors', 'generated', 'mocks', 'sandbox', 'server'],
  // These two run in browsers.
  inspector: ['docs', 'sandbox', 'type generated'],
  docs: ['engine'],
  sandbox: ['domain', 'errors', 'type ports', 'type engine'],
  simulated: ['adapters', 'engine', 'type ports', 'storage'],
  server: ['engine', 'errors', 'generated', 'observability', 'ports', 'passes', 'storage'],
  registry: ['type generated', 'api', 'type ports'],
  api: ['domain', 'errors', 'type generated', 'type ports'],
  jobs: ['domain', 'type ports'],
  domain: ['engine', 'errors', 'generated', 'observability', 'ports', 'passes', 'storage'],
  // The keys: no database, no HTTP of our own.
  keys: ['adapters', 'config', 'engine', 'type ports'],
  passes: ['errors', 'type ports', 'storage'],
  adapters: ['config', 'engine', 'observability', 'type ports'],
  observability: ['engine', 'type ports'],
  storage: ['engine'],
  // Ports that pass submitted data on use the contract's types of it; the key store's, those of what is signed.
  ports: ['type engine', 'type generated'],
  // The decoders take requests of the contract.
  engine: ['type generated'],
  errors: ['generated'],
  config: [],
  mocks: ['type generated'],
};

// Files of storage that domain verbs use at run time; the others only give them types.
const storageForDomain = [
  'database-errors',
  'find-page',
  'locks',
  'prepared-statements',
  'savepoint',
  'schema/partitions',
  'sql-functions',
].map((name) => `src/storage/${name}.ts`);

// The layers of the domain, lowest first, and the nouns on each. A noun imports nouns of lower layers, and those of its
// own layer in an earlier group.
const layers: Record<string, string[][]> = {
  base: [
    [
      'actions',
      'countries',
      'events',
      'idempotency',
      'lookup-keys',
      'partitions',
      'processes',
      'resource-changes',
      'restores',
      'safeguards',
      'sealed-keys',
    ],
    ['replay-protection'],
    ['fingerprints', 'audit'],
  ],
  access: [
    ['apps', 'chains', 'owners', 'user-records', 'webhooks'],
    ['operators'],
    ['key-quorums'],
    ['automations'],
    ['aggregations', 'condition-sets', 'organizations'],
    ['policies'],
  ],
  wallets: [
    ['wallet-authorities'],
    ['wallets'],
    ['balances', 'custodial-wallets', 'users', 'wallet-automations', 'wallet-uses'],
    ['accounts', 'allowlist', 'recovery'],
    ['tokens'],
    ['user-keys'],
    ['oauth'],
  ],
  money: [
    ['gas-spend'],
    ['transactions'],
    ['sending'],
    ['spark'],
    ['fiat-customers'],
    ['external-fiat-accounts'],
    ['fiat-deposits', 'cards'],
    ['wallet-actions'],
    ['earn'],
    ['swaps', 'automation-configs'],
    ['automation-runs', 'crypto-deposits'],
    ['payouts'],
  ],
  requests: [['wallet-rpc'], ['policy-analysis'], ['intents']],
};

// What a pure module may take from outside: arithmetic on bytes, no file, no socket, no clock.
const purePackages =
  /^(@noble|@scure|@hpke|ox)\/|^(ox|secp256k1\/lib\/index\.js|ripple-binary-codec|canonicalize|lru-cache)$|^node:(crypto|util|module|assert|buffer)(\/|$)/;

// Modules that may know which chains and assets have a name and how addresses are written, and nothing else that is pure.
const knowAssets = ['api', 'sandbox', 'inspector'];

// Packages with one module of their own.
const packageModules: Record<string, string[]> = {
  express: ['admin', 'server'],
  'openapi-backend': ['server'],
  'prom-client': ['observability'],
  commander: ['cli'],
  pino: ['adapters'],
  undici: ['adapters', 'testing'],
  '@peculiar/x509': ['adapters'],
  // Simulated chains keep a file of their own, apart from the server's database.
  'better-sqlite3': ['simulated', 'storage'],
  pg: ['storage'],
  ws: ['server'],
};

const files = sourceFiles('src/**/*.{ts,tsx}', 'mocks/*.ts');

function moduleOf(path: string): string {
  if (path.startsWith('mocks/')) return 'mocks';
  if (path === 'src/generated/registry.ts') return 'registry';
  if (path === 'src/keys/passes.ts') return 'passes';
  if (path.startsWith('src/sandbox/simulated/')) return 'simulated';
  const [, first = '', ...rest] = path.split('/');
  if (rest.length === 0) return first.replace(/\.ts$/, '');
  return first === 'web' ? rest[0]! : first;
}

function isAllowed(file: SourceFile, target: string, isTypeOnly: boolean): boolean {
  const [from, to] = [moduleOf(file.path), moduleOf(target)];
  if (from === 'domain' && to === 'storage') return isTypeOnly || storageForDomain.includes(target);
  if (knowAssets.includes(from) && /^src\/engine\/(assets\/|load-once\.ts)/.test(target)) return true;
  const allowed = allowedImports[from] ?? [];
  return from === to || allowed.includes(to) || (isTypeOnly && allowed.includes(`type ${to}`));
}

/** `layer/noun` of a file in the domain; undefined for the files outside the layers. */
function nounOf(path: string): string | undefined {
  return /^src\/domain\/([^/]+\/[^/]+)\//.exec(path)?.[1];
}

test('every module of the source is in the table, and every module of the table exists', () => {
  const modules = new Set(files.map((file) => moduleOf(file.path)));
  // The generated files are read by the modules that import them.
  const known = Object.keys(allowedImports).filter((module) => module !== 'registry');
  expect([...modules].sort()).toEqual(known.sort());
});

test('modules import along the allowed edges only', () => {
  const forbidden = files.flatMap((file) =>
    importsOf(file)
      .filter(({ isOurs, target, isTypeOnly }) => isOurs && !isAllowed(file, target, isTypeOnly))
      .map(({ target, isTypeOnly }) => `${file.path} -> ${target}${isTypeOnly ? ' (type)' : ''}`),
  );
  expect(forbidden).toEqual([]);
});

test('packages are used in their own module only, and pure modules do no I/O', () => {
  const forbidden = files.flatMap((file) => {
    const module = moduleOf(file.path);
    return importsOf(file)
      .filter(({ isOurs }) => !isOurs)
      .filter(({ target, isTypeOnly }) => {
        if (module === 'engine' && !isTypeOnly) return !purePackages.test(target);
        return packageModules[target]?.includes(module) === false;
      })
      .map(({ target }) => `${file.path} -> ${target}`);
  });
  expect(forbidden).toEqual([]);
});

test('entities import nothing but the ORM, its column types and types', () => {
  const forbidden = files
    .filter(({ path }) => path.endsWith('.entity.ts'))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ isTypeOnly }) => !isTypeOnly)
        .map(({ target }) => `${file.path} -> ${target}`),
    )
    .filter((edge) => !/ -> (@mikro-orm\/core|src\/storage\/sql-functions\.ts)$/.test(edge));
  expect(forbidden).toEqual([]);
});

const nouns = Object.entries(layers).flatMap(([layer, groups], height) =>
  groups.flatMap((group, place) =>
    group.map((noun) => ({ name: `${layer}/${noun}`, height: height * 100 + place })),
  ),
);
const heights = new Map(nouns.map(({ name, height }) => [name, height]));

test('every noun of the domain is in the table, and every noun of the table exists', () => {
  const found = new Set(files.flatMap(({ path }) => nounOf(path) ?? []));
  expect([...found].sort()).toEqual([...heights.keys()].sort());
});

test('a noun imports only nouns below it', () => {
  const upward = files.flatMap((file) => {
    const from = nounOf(file.path);
    if (from === undefined) return [];
    return importsOf(file)
      .map(({ target }) => target)
      .filter((target) => {
        const to = nounOf(target);
        return to !== undefined && to !== from && heights.get(to)! >= heights.get(from)!;
      })
      .map((target) => `${file.path} -> ${target}`);
  });
  expect(upward).toEqual([]);
});

test('modules form no cycle, type imports aside', () => {
  const edges = new Map(
    Object.entries(allowedImports).map(([module, open]) => [
      module,
      open.filter((target) => !target.startsWith('type ')),
    ]),
  );
  expect(cyclesIn(edges)).toEqual([]);
});

test('no file imports itself by a detour, type imports aside', () => {
  const edges = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ isOurs, isTypeOnly }) => isOurs && !isTypeOnly)
        .map(({ target }) => target),
    ]),
  );
  expect(cyclesIn(edges)).toEqual([]);
});

/** Every way that leads from a node back to itself, found once for each edge that closes one. */
function cyclesIn(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (node: string, trail: readonly string[]): void => {
    const begin = trail.indexOf(node);
    if (begin !== -1) cycles.push([...trail.slice(begin), node].join(' -> '));
    if (begin !== -1 || done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...trail, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return cycles;
}
