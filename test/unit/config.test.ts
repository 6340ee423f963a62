import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Option } from 'commander';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../src/adapters/runtime.ts';
import {
  ConfigError,
  readDatabaseConfig,
  readDatabases,
  readKeysConfig,
  readSandboxConfig,
  readServeConfig,
  readSignerConfig,
} from '../../src/config/config.ts';
import type { Setting } from '../../src/config/setting.ts';
import { settings } from '../../src/config/settings.ts';
import { temporaryFolder } from '../support/run-custos.ts';

const folder = temporaryFolder();
const masterKeyHex = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
const masterKey = Buffer.from(masterKeyHex, 'hex');
let whole: Record<string, string>;

function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

beforeAll(async () => {
  const { cert, key } = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
  whole = {
    DATABASE_URL: 'postgresql://custos:pw@db.example:5432/custos',
    CUSTOS_TLS_CERT: fileOf('cert.pem', cert),
    CUSTOS_TLS_KEY: fileOf('key.pem', key),
    CUSTOS_MASTER_KEY: masterKeyHex,
    CUSTOS_PUBLIC_URLS: 'https://api.acme.example/, https://wallets.acme.example',
  };
});

/** The faults that a production server reports for its settings. */
type Environment = Record<string, string | undefined>;

/** As `process.env` is: without names that have no value. */
const setOnly = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));

const faultsOf = (env: Environment, flags: { seed?: string } = {}): readonly string[] =>
  faultsIn(() => readServeConfig(flags, setOnly(env)));

/** What the signer finds, which alone reads the keys. */
const keyFaultsOf = (env: Environment): readonly string[] => faultsIn(() => readSignerConfig(setOnly(env)));

function faultsIn(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

test('a complete environment creates a frozen config', () => {
  const admission = { requests: 2000, concurrent: { reads: 20, writes: 4, signing: 4 }, delayMs: 20 };
  const config = readServeConfig({}, { ...whole, PATH: '/bin' });
  expect(config).toEqual({
    cells: {
      directoryUrl: undefined,
      cells: [
        {
          ...{ name: 'default', databaseUrl: whole.DATABASE_URL, poolSize: 10, acceptsApps: true },
          ...{ replicaUrl: undefined, checkpointFile: undefined },
        },
      ],
      admission: new Map([['default', admission]]),
    },
    workers: 1,
    afterPromotion: 'hold',
    admission,
    connections: { total: 10_000, perAddress: 1_000 },
    drainMs: 5_000,
    host: '0.0.0.0',
    port: 8443,
    adminHost: '127.0.0.1',
    adminPort: 9464,
    prefix: 'service',
    publicUrls: ['https://api.acme.example', 'https://wallets.acme.example'],
    rateLimit: { perSecond: 100, burst: 200 },
    usersPerMinute: 240,
    logLevel: 'info',
    loggedShare: 1,
    telemetry: undefined,
    readCertificate: expect.any(Function),
    tls: {
      cert: expect.stringContaining('BEGIN CERTIFICATE'),
      key: expect.stringContaining('BEGIN PRIVATE KEY'),
    },
    trustedProxies: [],
    signer: {
      ...{ kind: 'child', files: [], exposed: ['CUSTOS_MASTER_KEY'] },
      environment: expect.any(Function),
    },
    responseCheck: 'sampled',
    rpc: [],
    swapRouters: new Map(),
    rewards: { distributors: new Map(), url: 'https://api.merkl.xyz', apiKey: undefined },
    automationFeeShare: 0.5,
    bridge: [],
  });
  expect(Object.isFrozen(config)).toBe(true);
});

test('a trusted proxy replaces the certificate', () => {
  const env = { ...whole, CUSTOS_TLS_CERT: undefined, CUSTOS_TLS_KEY: undefined };
  const config = readServeConfig({}, { ...env, CUSTOS_TRUST_PROXY: '10.0.0.0/8, ::1' });
  expect([config.tls, config.trustedProxies]).toEqual([undefined, ['10.0.0.0/8', '::1']]);
  expect(faultsOf({ ...env, CUSTOS_TRUST_PROXY: '10.0.0.0/33' })).toEqual([
    'CUSTOS_TRUST_PROXY: expected addresses or subnets such as `10.0.0.0/8`, got `10.0.0.0/33`',
  ]);
});

test('the limits of admission follow the size of the connection pool, and can be set or switched off', () => {
  const read = (env: Record<string, string>) => readServeConfig({}, { ...whole, ...env }).admission;
  expect(read({ CUSTOS_DATABASE_POOL: '2' })?.concurrent).toEqual({ reads: 4, writes: 1, signing: 1 });
  expect(
    read({
      CUSTOS_MAX_REQUESTS: '50',
      CUSTOS_CONCURRENT_READS: '7',
      CUSTOS_CONCURRENT_WRITES: '6',
      CUSTOS_CONCURRENT_SIGNING: '5',
      CUSTOS_MAX_DELAY_MS: '100',
    }),
  ).toEqual({ requests: 50, concurrent: { reads: 7, writes: 6, signing: 5 }, delayMs: 100 });
  expect(read({ CUSTOS_MAX_DELAY_MS: '0' })).toBeUndefined();
  expect(faultsOf({ ...whole, CUSTOS_MAX_REQUESTS: '0' })).toEqual([
    'CUSTOS_MAX_REQUESTS: expected a whole number from 1 to 1000000, got `0`',
  ]);
});

test.each([
  ['hex', masterKeyHex],
  ['base64', masterKey.toString('base64')],
  ['with a newline', `${masterKeyHex}\n`],
])('the master key is read from a file too: %s', (name, text) => {
  const env = { ...whole, CUSTOS_MASTER_KEY: undefined, CUSTOS_MASTER_KEY_FILE: fileOf(`${name}.key`, text) };
  expect(Buffer.from(readSignerConfig(setOnly(env)).local[0]!).toString('hex')).toBe(masterKeyHex);
});

test.each([
  [
    { CUSTOS_KMS_URL: 'https://kms.example', CUSTOS_KMS_KEY: 'custos', CUSTOS_KMS_TOKEN: 'token' },
    'expected only one of CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE and CUSTOS_KMS_URL',
  ],
  [{ CUSTOS_TLS_KEY: undefined }, 'CUSTOS_TLS_KEY is missing: CUSTOS_TLS_CERT requires it'],
  [
    { DATABASE_URL: 'mysql://custos:hidden@db/custos' },
    'DATABASE_URL: expected a URL such as `postgresql://user:password@host:5432/custos`',
  ],
  [{ CUSTOS_LOG_REQUESTS: '1.5' }, 'CUSTOS_LOG_REQUESTS: expected a number from 0 to 1, got `1.5`'],
  [{ CUSTOS_LOG_REQUESTS: '1 %' }, 'CUSTOS_LOG_REQUESTS: expected a number from 0 to 1, got `1 %`'],
  [{ CUSTOS_RATE_LIMIT: '10/x' }, 'CUSTOS_RATE_LIMIT: expected a whole number from 1 to 1000000, got `x`'],
  [
    { CUSTOS_RESPONSE_CHECK: 'often' },
    'CUSTOS_RESPONSE_CHECK: expected one of off, sampled, always, got `often`',
  ],
  [{ CUSTOS_TLS_CRET: 'x' }, 'CUSTOS_TLS_CRET is not a setting; see `custos serve --help`'],
])('%j is the only fault', (change, fault) => {
  expect(faultsOf({ ...whole, ...change })).toEqual([fault]);
});

describe('fee ceilings', () => {
  const rpc = 'eip155:1=https://a.example eip155:137=https://b.example solana:abc=https://c.example';
  const gwei = 1_000_000_000n;

  test('fee ceilings belong to the nodes of a chain', () => {
    const env = {
      ...whole,
      CUSTOS_RPC: rpc,
      CUSTOS_FEE_CEILINGS:
        'eip155:1=price_gwei:300,tip_gwei:50,gas:5000000,fee_gwei:90000000 eip155:137=gas:1',
    };
    expect(readServeConfig({}, env).rpc.map(({ ceilings }) => ceilings)).toEqual([
      {
        maxFeePerGas: 300n * gwei,
        maxPriorityFeePerGas: 50n * gwei,
        gas: 5_000_000n,
        fee: 90_000_000n * gwei,
      },
      { gas: 1n },
      undefined,
    ]);
  });

  test.each([
    ['eip155:10=gas:1', 'expected the id of an EVM chain that has nodes, got `eip155:10`'],
    ['solana:abc=gas:1', 'expected the id of an EVM chain that has nodes, got `solana:abc`'],
    ['eip155:1=gas:-1', 'with one of price_gwei, tip_gwei, gas, fee_gwei, got `gas:-1`'],
    ['eip155:1=constructor:1', 'got `constructor:1`'],
    ['eip155:1=gas:1.5', 'got `gas:1.5`'],
  ])('fee ceilings: %s is refused', (entry, fault) => {
    const faults = faultsOf({ ...whole, CUSTOS_RPC: rpc, CUSTOS_FEE_CEILINGS: entry });
    expect(faults).toEqual([expect.stringContaining(fault)]);
  });

  test('reach the signer that the server starts, which knows no nodes', () => {
    const ceilings = 'eip155:1=price_gwei:300 eip155:137=gas:1';
    const { signer } = readServeConfig({}, { ...whole, CUSTOS_RPC: rpc, CUSTOS_FEE_CEILINGS: ceilings });
    const environment = signer.kind === 'child' ? signer.environment() : {};
    expect(environment.CUSTOS_RPC).toBeUndefined();
    expect(readSignerConfig(environment).building.feeCeilings).toEqual(
      new Map([
        ['eip155:1', { maxFeePerGas: 300n * gwei }],
        ['eip155:137', { gas: 1n }],
      ]),
    );
    expect(
      faultsIn(() => readSignerConfig({ ...environment, CUSTOS_FEE_CEILINGS: 'solana:abc=gas:1' })),
    ).toEqual(['CUSTOS_FEE_CEILINGS: expected the id of an EVM chain, got `solana:abc`']);
  });

  test('stay with a server whose signer listens', () => {
    const { CUSTOS_MASTER_KEY: _, ...others } = whole;
    const env = {
      ...others,
      CUSTOS_SIGNER_SOCKET: '/run/custos/socket',
      CUSTOS_RPC: rpc,
      CUSTOS_FEE_CEILINGS: 'eip155:1=gas:7',
    };
    expect(readServeConfig({}, env).rpc[0]!.ceilings).toEqual({ gas: 7n });
  });
});

describe('confirmations', () => {
  const rpc = 'eip155:1=https://a.example eip155:137=https://b.example solana:x=https://c.example';

  test('confirmations are set per chain', () => {
    const env = { ...whole, CUSTOS_RPC: rpc, CUSTOS_CONFIRMATIONS: 'eip155:1=32 eip155:137=off' };
    expect(readServeConfig({}, env).rpc.map(({ confirmations }) => confirmations)).toEqual([
      32,
      0,
      undefined,
    ]);
  });

  test.each([
    ['eip155:10=1', 'expected the id of a chain that has nodes, got `eip155:10`'],
    ['eip155:1=0', 'expected `off` or a number of blocks up to 9999, got `0`'],
    ['eip155:1=10000', 'got `10000`'],
    ['eip155:1', 'got ``'],
  ])('confirmations: %s is refused', (entry, fault) => {
    const faults = faultsOf({ ...whole, CUSTOS_RPC: rpc, CUSTOS_CONFIRMATIONS: entry });
    expect(faults).toEqual([expect.stringContaining(fault)]);
  });
});

describe('swap routers', () => {
  const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D';
  const rpc = { CUSTOS_RPC: 'eip155:1=https://a.example solana:abc=https://c.example' };

  test('swap routers belong to chains that have nodes', () => {
    const env = { ...whole, ...rpc, CUSTOS_SWAP_ROUTERS: `eip155:1=${router}` };
    expect([...readServeConfig({}, env).swapRouters]).toEqual([['eip155:1', { router }]]);
    const sandbox = readSandboxConfig({
      rpc: ['eip155:1=http://127.0.0.1:8545'],
      swapRouter: [`eip155:1=${router}`],
    });
    expect([...sandbox.swapRouters]).toEqual([['eip155:1', { router }]]);
  });

  test('swap routers may name the wrapped asset, and reach the signer with the distributors of rewards', () => {
    const wrapped = '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2';
    const given = {
      CUSTOS_SWAP_ROUTERS: `eip155:1=${router},${wrapped}`,
      CUSTOS_REWARD_DISTRIBUTORS: `eip155:1=${router}`,
    };
    const { signer, swapRouters } = readServeConfig({}, { ...whole, ...rpc, ...given });
    const expected = new Map([['eip155:1', { router, wrapped }]]);
    expect(swapRouters).toEqual(expected);
    const environment = signer.kind === 'child' ? signer.environment() : {};
    expect(readSignerConfig(environment).building).toEqual({
      feeCeilings: new Map(),
      swapRouters: expected,
      rewardDistributors: new Map([['eip155:1', router]]),
    });
  });

  test.each([
    [`eip155:10=${router}`, 'expected the id of an EVM chain that has nodes, got `eip155:10`'],
    [`solana:abc=${router}`, 'expected the id of an EVM chain that has nodes, got `solana:abc`'],
    ['eip155:1=0x12', 'expected the address of a router after `eip155:1=`, got `0x12`'],
    [`eip155:1=${router},0x12`, 'expected the address of the wrapped asset after the comma, got `0x12`'],
    [`eip155:1=${router},`, 'expected the address of the wrapped asset after the comma, got ``'],
    [`eip155:1=${router} eip155:1=${router}`, 'expected one router for `eip155:1`'],
  ])('swap routers: %s is refused', (entry, fault) => {
    const faults = faultsOf({ ...whole, ...rpc, CUSTOS_SWAP_ROUTERS: entry });
    expect(faults).toEqual([expect.stringContaining(fault)]);
  });
});

describe('rewards', () => {
  const distributor = '0x3Ef3D8bA38EBe18DB133cEc108f4D14CE00Dd9Ae';
  const rpc = { CUSTOS_RPC: 'eip155:8453=https://a.example' };

  test('rewards are paid by distributors on chains that have nodes, and proven by an API that can be another one', () => {
    const env = { ...whole, ...rpc, CUSTOS_REWARD_DISTRIBUTORS: `eip155:8453=${distributor}` };
    const own = { CUSTOS_MERKL_URL: 'https://merkl.acme.example/', CUSTOS_MERKL_API_KEY: 'key' };
    const distributors = new Map([['eip155:8453', distributor]]);
    expect(readServeConfig({}, env).rewards).toEqual({
      ...{ distributors, url: 'https://api.merkl.xyz', apiKey: undefined },
    });
    expect(readServeConfig({}, { ...env, ...own }).rewards).toEqual({
      ...{ distributors, url: 'https://merkl.acme.example', apiKey: 'key' },
    });
    const sandbox = readSandboxConfig({
      ...{ rpc: ['eip155:8453=http://127.0.0.1:8545'], rewardDistributor: [`eip155:8453=${distributor}`] },
      merklUrl: 'http://127.0.0.1:9000',
    });
    expect(sandbox.rewards).toEqual({ distributors, url: 'http://127.0.0.1:9000', apiKey: undefined });
  });

  test.each([
    [
      { CUSTOS_REWARD_DISTRIBUTORS: `eip155:1=${distributor}` },
      'expected the id of an EVM chain that has nodes',
    ],
    [
      { CUSTOS_REWARD_DISTRIBUTORS: 'eip155:8453=0x12' },
      'expected the address of a reward distributor after',
    ],
    [{ CUSTOS_MERKL_URL: 'http://merkl.example' }, 'CUSTOS_MERKL_URL: expected an https URL'],
    [
      { CUSTOS_MERKL_API_KEY: 'two words' },
      'CUSTOS_MERKL_API_KEY: expected 1 to 256 printable ASCII characters',
    ],
  ])('rewards: %j is refused', (env, fault) => {
    expect(faultsOf({ ...whole, ...rpc, ...env })).toEqual([expect.stringContaining(fault)]);
  });
});

describe('master keys', () => {
  const otherHex = 'ab'.repeat(32);
  const kms = {
    CUSTOS_KMS_URL: 'https://kms.acme.example/',
    CUSTOS_KMS_KEY: 'custos',
    CUSTOS_KMS_TOKEN: 's.token',
  };
  const other = new Uint8Array(Buffer.from(otherHex, 'hex'));

  test('the current one comes first, previous ones follow', () => {
    const previous = `${otherHex} , ${masterKey.toString('base64')},`;
    const masterKeys = readSignerConfig({ ...whole, CUSTOS_PREVIOUS_MASTER_KEYS: previous });
    expect(masterKeys).toEqual({
      local: [new Uint8Array(masterKey), other, new Uint8Array(masterKey)],
      transit: undefined,
      logins: new Map(),
      building: { feeCeilings: new Map(), swapRouters: new Map(), rewardDistributors: new Map() },
    });
  });

  test('a key management service replaces the current one', () => {
    const env = { ...whole, ...kms, CUSTOS_MASTER_KEY: undefined, CUSTOS_PREVIOUS_MASTER_KEYS: otherHex };
    expect(readSignerConfig(setOnly(env))).toEqual({
      local: [other],
      transit: { url: 'https://kms.acme.example', key: 'custos', token: 's.token' },
      logins: new Map(),
      building: { feeCeilings: new Map(), swapRouters: new Map(), rewardDistributors: new Map() },
    });
    const { logins: _, building: __, ...masterKeys } = readSignerConfig(setOnly(env));
    expect(readKeysConfig(setOnly(env))).toMatchObject({
      cells: { cells: [{ databaseUrl: whole.DATABASE_URL }] },
      keyStore: { kind: 'local', masterKeys },
    });
  });

  test.each([
    [
      { CUSTOS_MASTER_KEY: undefined },
      [expect.stringMatching(/^CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE or CUSTOS_KMS_URL is missing: /)],
    ],
    [
      { CUSTOS_MASTER_KEY: '00'.repeat(32) },
      [
        'CUSTOS_MASTER_KEY: expected random bytes, e.g. from `openssl rand -hex 32`; this key has too few distinct bytes',
      ],
    ],
    [
      { CUSTOS_MASTER_KEY: '000102030405060708090a0b0c0d0e00'.repeat(2) },
      [
        'CUSTOS_MASTER_KEY: expected random bytes, e.g. from `openssl rand -hex 32`; this key has too few distinct bytes',
      ],
    ],
    [
      { ...kms, CUSTOS_MASTER_KEY: undefined, CUSTOS_KMS_URL: 'http://kms.acme.example' },
      ['CUSTOS_KMS_URL: expected an https URL; plain http is accepted on loopback only'],
    ],
    [
      { ...kms, CUSTOS_MASTER_KEY: undefined, CUSTOS_KMS_URL: 'http://localhost.acme.example' },
      ['CUSTOS_KMS_URL: expected an https URL; plain http is accepted on loopback only'],
    ],
    [kms, ['expected only one of CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE and CUSTOS_KMS_URL']],
    [
      { CUSTOS_MASTER_KEY: undefined, CUSTOS_KMS_URL: 'kms.acme.example' },
      [
        'CUSTOS_KMS_KEY is missing: the name of the wrapping key at CUSTOS_KMS_URL',
        'CUSTOS_KMS_TOKEN is missing: the token for CUSTOS_KMS_URL',
        'CUSTOS_KMS_URL: expected an http(s) URL without a query, got `kms.acme.example`',
      ],
    ],
    [{ CUSTOS_MASTER_KEY: 'c2hvcnQ=' }, ['CUSTOS_MASTER_KEY: expected 32 bytes in hex or base64, got 5']],
    [
      { CUSTOS_PREVIOUS_MASTER_KEYS: `${otherHex},c2hvcnQ=` },
      ['CUSTOS_PREVIOUS_MASTER_KEYS: expected 32 bytes in hex or base64, got 5'],
    ],
  ])('master keys: %j is reported', (change, faults) => {
    expect(keyFaultsOf({ ...whole, ...change })).toEqual(faults);
  });

  test('the server itself reads names only: what is missing, and whether there are too many', () => {
    const values = new Proxy(
      { ...whole, ...kms },
      {
        get(env, name) {
          if (/^CUSTOS_(MASTER_KEY|KMS_TOKEN)$/.test(String(name))) throw new Error(`read ${String(name)}`);
          return Reflect.get(env, name);
        },
      },
    );
    expect(faultsIn(() => readServeConfig({}, values))).toEqual([
      'expected only one of CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE and CUSTOS_KMS_URL',
    ]);
    expect(faultsOf({ ...whole, CUSTOS_MASTER_KEY: undefined })).toEqual([
      expect.stringContaining('CUSTOS_KMS_URL is missing'),
    ]);
    const { CUSTOS_MASTER_KEY: _, ...withoutKey } = whole;
    const socket = { CUSTOS_SIGNER_SOCKET: '/run/custos/socket', CUSTOS_SIGNER_UID: '1001' };
    expect(readServeConfig({}, { ...withoutKey, ...socket }).signer).toEqual({
      ...{ kind: 'socket', path: '/run/custos/socket', uid: 1001 },
    });
    expect(faultsOf({ ...whole, ...socket })).toEqual([
      'expected either CUSTOS_SIGNER_SOCKET, whose signer has the keys, or CUSTOS_MASTER_KEY',
    ]);
  });

  test('a sandbox prepares the keys of a burst of wallets, unless it is told not to', () => {
    expect(readSandboxConfig({}).preparedKeys).toBe(512);
    expect(readSandboxConfig({ preparedKeys: '0' }).preparedKeys).toBe(0);
    for (const preparedKeys of ['-1', '10001', 'many', '']) {
      expect(() => readSandboxConfig({ preparedKeys })).toThrow(
        `--prepared-keys: expected a whole number from 0 to 10000, got \`${preparedKeys}\``,
      );
    }
  });

  test('the signer that a server starts gets the number of signatures per request, if one is configured', () => {
    const { signer } = readServeConfig({}, { ...whole, CUSTOS_SIGNATURES_PER_REQUEST: '2' });
    const environment = signer.kind === 'child' ? signer.environment() : {};
    expect(readSignerConfig(environment).signaturesPerRequest).toBe(2);
    expect(readSignerConfig(setOnly(whole))).not.toHaveProperty('signaturesPerRequest');
    for (const text of ['0', '1001', '']) {
      expect(() => readSignerConfig(setOnly({ ...whole, CUSTOS_SIGNATURES_PER_REQUEST: text }))).toThrow(
        'CUSTOS_SIGNATURES_PER_REQUEST: expected a whole number from 1 to 1000',
      );
    }
  });

  test('previous keys and the token of a service can be in files', () => {
    const env = {
      CUSTOS_PREVIOUS_MASTER_KEYS_FILE: fileOf('previous.keys', `${otherHex}\n${masterKeyHex}\n`),
      CUSTOS_KMS_URL: kms.CUSTOS_KMS_URL,
      CUSTOS_KMS_KEY: kms.CUSTOS_KMS_KEY,
      CUSTOS_KMS_TOKEN_FILE: fileOf('token', 's.other\n'),
    };
    const { local, transit } = readSignerConfig(env);
    expect(local).toEqual([other, new Uint8Array(masterKey)]);
    expect(transit?.token).toBe('s.other');
  });

  test('the engine of a service may have another path, and a namespace', () => {
    const of = (more: object) =>
      readSignerConfig(setOnly({ ...whole, ...kms, CUSTOS_MASTER_KEY: undefined, ...more })).transit;
    expect(of({ CUSTOS_KMS_MOUNT: '/team/transit/', CUSTOS_KMS_NAMESPACE: 'payments/eu/' })).toMatchObject({
      mount: 'team/transit',
      namespace: 'payments/eu',
    });
    for (const name of ['CUSTOS_KMS_MOUNT', 'CUSTOS_KMS_NAMESPACE']) {
      for (const text of ['', '/', 'a//b', '../sys', 'a\nb', 'a b'])
        expect(() => of({ [name]: text }), text).toThrow(`${name}: expected a path`);
      expect(() => readSignerConfig(setOnly({ ...whole, [name]: 'a' }))).toThrow(
        `${name}: expected CUSTOS_KMS_URL with it`,
      );
    }
  });

  test.each(['127.0.0.1', 'localhost', '[::1]'])(
    'a management service on %s may speak plain http',
    (host) => {
      const url = `http://${host}:8200`;
      const env = { ...whole, ...kms, CUSTOS_MASTER_KEY: undefined, CUSTOS_KMS_URL: url };
      expect(readSignerConfig(setOnly(env)).transit?.url).toBe(url);
    },
  );

  test('16 distinct bytes are enough for a current key, and any are for one that is rotated away', () => {
    const key = '000102030405060708090a0b0c0d0e0f'.repeat(2);
    const env = { ...whole, CUSTOS_MASTER_KEY: key, CUSTOS_PREVIOUS_MASTER_KEYS: '00'.repeat(32) };
    expect(readSignerConfig(setOnly(env)).local).toHaveLength(2);
  });

  test('a fault contains neither a key nor a token', () => {
    const env = {
      ...whole,
      ...kms,
      CUSTOS_KMS_URL: 'nonsense',
      CUSTOS_PREVIOUS_MASTER_KEYS: `${otherHex}ff`,
    };
    const reported = [...faultsOf(env), ...keyFaultsOf(env)].join('\n');
    expect(reported).toContain('CUSTOS_PREVIOUS_MASTER_KEYS');
    for (const secret of [otherHex, masterKeyHex, 's.token']) expect(reported).not.toContain(secret);
  });
});

test('a key that does not match the certificate is detected at start', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = fileOf('other.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  expect(faultsOf({ ...whole, CUSTOS_TLS_KEY: other })).toEqual([
    'CUSTOS_TLS_KEY: expected the private key of CUSTOS_TLS_CERT',
  ]);
});

test('a fault never contains a secret', () => {
  const env = { ...whole, DATABASE_URL: 'mysql://custos:hidden@db/custos', CUSTOS_MASTER_KEY: 'hidden' };
  expect(faultsOf(env).join('\n')).not.toContain('hidden');
});

test('the token key of a sandbox may be a public key, a certificate or a private key', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const spki = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  expect(readSandboxConfig({ jwtKey: fileOf('public.pem', spki) }).jwtPublicKeyPem).toBe(spki);
  expect(readSandboxConfig({ jwtKey: fileOf('private.pem', pkcs8) }).jwtPublicKeyPem).toBe(spki);
  expect(readSandboxConfig({ jwtKey: whole.CUSTOS_TLS_CERT! }).jwtPublicKeyPem).toContain('BEGIN PUBLIC KEY');
  const { publicKey: ed25519 } = generateKeyPairSync('ed25519');
  const wrong = fileOf('ed25519.pem', ed25519.export({ type: 'spki', format: 'pem' }).toString());
  expect(() => readSandboxConfig({ jwtKey: wrong })).toThrow('expected an RSA or P-256 key');
});

test('the database of a command is the folder when one is given', () => {
  expect(readDatabaseConfig({ data: '/srv/custos' }, whole)).toEqual({
    kind: 'folder',
    folder: '/srv/custos',
  });
  expect(readDatabaseConfig({}, whole)).toEqual({ kind: 'postgres', url: whole.DATABASE_URL });
});

describe('the fiat provider', () => {
  const names = {
    url: 'CUSTOS_BRIDGE_SANDBOX_URL',
    key: 'CUSTOS_BRIDGE_SANDBOX_KEY',
    file: 'CUSTOS_BRIDGE_SANDBOX_KEY_FILE',
    webhook: 'CUSTOS_BRIDGE_SANDBOX_WEBHOOK_KEY',
  };

  test('each environment has its address and key, from the environment or a file', () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const config = readServeConfig(
      {},
      {
        ...whole,
        ...{ [names.url]: 'https://fiat.example/v0/', [names.file]: fileOf('fiat-key', 'sk-test-123456\n') },
        [names.webhook]: fileOf('webhook.pem', pem),
        CUSTOS_BRIDGE_PRODUCTION_URL: 'http://127.0.0.1:8080/v0',
        CUSTOS_BRIDGE_PRODUCTION_KEY: 'sk-live-123456',
      },
    );
    expect(config.bridge).toEqual([
      {
        ...{ environment: 'sandbox', baseUrl: 'https://fiat.example/v0', apiKey: 'sk-test-123456' },
        webhookKey: publicKey,
      },
      {
        ...{ environment: 'production', baseUrl: 'http://127.0.0.1:8080/v0', apiKey: 'sk-live-123456' },
        webhookKey: undefined,
      },
    ]);
  });

  test('faults are named without the key', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const path = fileOf('ec.pem', publicKey.export({ type: 'spki', format: 'pem' }).toString());
    const url = 'https://fiat.example/v0';
    const base = `${names.url}: expected the base URL of the provider with its version, e.g. \`https://…/v0\``;
    const key = `expected one of ${names.key} and ${names.file}: the API key of the provider`;
    const cases: readonly (readonly [Record<string, string>, readonly string[]])[] = [
      [{ [names.url]: url }, [key]],
      [{ [names.url]: url, [names.key]: 'sk-test-123456', [names.file]: path }, [key]],
      [{ [names.key]: 'sk-test-123456' }, [base]],
      [{ [names.url]: `${url}?key=1`, [names.key]: 'sk-test-123456' }, [base]],
      [
        { [names.url]: 'http://fiat.example/v0', [names.key]: 'sk-test-123456' },
        [`${names.url}: expected an https URL; plain http is accepted on loopback only`],
      ],
      [
        { [names.url]: url, [names.key]: 'sk test' },
        [`${names.key}: expected an API key of 8 to 512 printable ASCII characters without spaces`],
      ],
      [
        { [names.url]: url, [names.key]: 'sk-test-123456', [names.webhook]: path },
        [`${names.webhook}: expected an RSA key in \`${path}\``],
      ],
      [
        { [names.url]: url, [names.key]: 'sk-test-123456', [names.webhook]: fileOf('no.pem', 'none') },
        [`${names.webhook}: expected a PEM key or certificate in \`${join(folder, 'no.pem')}\``],
      ],
    ];
    for (const [env, faults] of cases) expect(faultsOf({ ...whole, ...env })).toEqual(faults);
  });
});

test('the table has each option under the name that commander gives it, and defaults that its readers take', () => {
  for (const [key, { flag, default: defaults = [], read }] of Object.entries<Setting>(settings)) {
    if (flag !== undefined) expect(new Option(flag).attributeName()).toBe(key);
    const faults: string[] = [];
    for (const text of [defaults].flatMap((each) => (typeof each === 'string' ? each : Object.values(each))))
      read?.(faults, key, text as never);
    expect(faults).toEqual([]);
  }
});

describe('a deployment with several cells', () => {
  const eu = { name: 'eu', database_url: 'postgresql://custos@eu.example/custos' };
  const us = { name: 'us', database_url: 'postgresql://custos@us.example/custos' };
  const directory = 'postgresql://custos@eu.example/directory';
  const withFile = (content: unknown): { path: string; env: NodeJS.ProcessEnv } => {
    const path = fileOf('cells.json', typeof content === 'string' ? content : JSON.stringify(content));
    return { path, env: setOnly({ ...whole, DATABASE_URL: undefined, CUSTOS_CELLS_FILE: path }) };
  };

  test('the file replaces DATABASE_URL, and each cell has the limits of its pool', () => {
    const { env } = withFile({
      directory_url: directory,
      cells: [eu, { ...us, pool: 40, replica_url: us.database_url, accepts_apps: false }],
    });
    const { cells } = readServeConfig({}, env);
    expect(cells).toMatchObject({
      directoryUrl: directory,
      cells: [
        { name: 'eu', databaseUrl: eu.database_url, poolSize: 10, acceptsApps: true },
        { name: 'us', poolSize: 40, replicaUrl: us.database_url, acceptsApps: false },
      ],
    });
    expect(cells.admission.get('us')?.concurrent).toEqual({ reads: 80, writes: 19, signing: 19 });
    expect(faultsOf({ ...env, DATABASE_URL: whole.DATABASE_URL })).toEqual([
      'DATABASE_URL: expected none, because CUSTOS_CELLS_FILE is set',
    ]);
  });

  test('a command needs the name of a cell, unless it acts on all', () => {
    const { env } = withFile({ directory_url: directory, cells: [eu, us] });
    expect(readDatabaseConfig({ cell: 'us' }, env)).toEqual({
      ...{ kind: 'postgres', url: us.database_url, cell: 'us' },
    });
    expect(readDatabases({}, env).map(({ cell }) => cell)).toEqual(['eu', 'us']);
    expect(faultsIn(() => readDatabaseConfig({}, env))).toEqual(['--cell: expected one of `eu`, `us`']);
    for (const read of [readDatabaseConfig, readDatabases]) {
      const faults = faultsIn(() => read({ cell: 'asia' }, env));
      expect(faults).toEqual(['--cell: expected one of `eu`, `us`, got `asia`']);
    }
  });

  test.each<[string, unknown, RegExp]>([
    ['no JSON', '{', /expected JSON/],
    [
      'no cells',
      { directory_url: directory, cells: [] },
      /at \/cells: expected a list of at least one cell$/,
    ],
    ['no directory', { cells: [eu] }, /at \/directory_url is missing/],
    [
      'a bad name',
      { directory_url: directory, cells: [{ ...eu, name: 'EU 1' }] },
      /at \/cells\/0\/name: expected a name/,
    ],
    [
      'a cell twice',
      { directory_url: directory, cells: [eu, { ...us, name: 'eu' }] },
      /at \/cells\/1\/name: expected another name/,
    ],
    [
      'a database twice',
      { directory_url: directory, cells: [eu, { ...eu, name: 'us' }] },
      /at \/cells\/1\/database_url: expected another database_url than that of the cell `eu`/,
    ],
    [
      'a typo',
      { directory_url: directory, cells: [{ ...eu, pol: 3 }] },
      /at \/cells\/0\/pol: expected one of name, /,
    ],
    [
      'a bad pool',
      { directory_url: directory, cells: [{ ...eu, pool: 0 }] },
      /at \/cells\/0\/pool: expected a whole number/,
    ],
    [
      'a typo at the top',
      { directory_url: directory, cells: [eu], direktory_url: directory },
      /at \/direktory_url: expected one of directory_url, cells$/,
    ],
    ['null', { directory_url: directory, cells: [null] }, /at \/cells\/0: expected an object/],
  ])('a fault names the file and the place: %s', (_, content, expected) => {
    const { path, env } = withFile(content);
    const faults = faultsOf(env);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(expected);
    expect(faults[0]).toContain(`CUSTOS_CELLS_FILE: \`${path}\``);
  });
});
