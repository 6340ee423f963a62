import { resolve } from 'node:path';
import { type AdmissionSettings, admission, sandboxAdmission } from './admission.ts';
import * as chains from './chains.ts';
import * as check from './checks.ts';
import { clientNames } from './client.ts';
import { type BridgeSettings, bridgeSettings, fiatNames } from './fiat.ts';
import * as signer from './signer.ts';
import { type TelemetrySettings, telemetryNames, telemetrySettings } from './telemetry.ts';

/** The settings are invalid or incomplete. The message lists every fault on its own line. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(summary: string, faults: readonly string[]) {
    super([summary, ...faults.map((fault) => `  - ${fault}`)].join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
/** Settings of every command that serves HTTP. */
export interface ListenConfig {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Port of `/metrics`; undefined: not served. */
  adminPort: number | undefined;
  /** The word that replaces `service` on the wire. */
  prefix: string;
  /** Base URLs under which clients sign requests, in addition to the request's own. No trailing slash. */
  publicUrls: readonly string[];
  rateLimit: check.RateLimit | undefined;
  /** Undefined: everything is admitted. */
  admission: Readonly<AdmissionSettings> | undefined;
  logLevel: (typeof logLevels)[number];
}

/** CHOICE: enough for a burst of 500 wallets. Takes 0.5 MB. */
const PREPARED_KEYS = 512;

/** Settings of `custos sandbox` and `custos mock`. */
export interface SandboxConfig extends ListenConfig {
  /** Absolute path; undefined: in memory. */
  dataFolder: string | undefined;
  /** The snapshot to start with: a file, or a name in the data folder. */
  load: string | undefined;
  seed: string | undefined;
  /** Frozen at a time in Unix ms if one is given. */
  clock: 'now' | 'frozen' | number | undefined;
  seedData: boolean;
  appId: string | undefined;
  appSecret: string | undefined;
  /** SPKI PEM of the key that signs the users' tokens. */
  jwtPublicKeyPem: string | undefined;
  plainHttp: boolean;
  /** Time until simulated chains confirm a transaction; undefined: with the next block. */
  confirmAfterMs: number | undefined;
  /** Chains backed by real nodes; all others are simulated. */
  rpc: readonly chains.RpcEndpoints[];
  /** The swap router of each chain with a real node, by CAIP-2 id; simulated chains have their own. */
  swapRouters: ReadonlyMap<string, chains.RouterEntry>;
  /** The rewards on chains with a real node; simulated chains have their own. */
  rewards: chains.RewardSettings;
  /** Whether requests are recorded for `/_sandbox/requests`. */
  record: boolean;
  /** Whether requests and jobs are recorded in the audit log, as in production. What operators do always is. */
  audit: boolean;
  /** Whether refusals contain `data.hint`. */
  hints: boolean;
  /** What callers on other machines send to the control plane; undefined: drawn where other machines can reach it. */
  controlToken: string | undefined;
  readyFile: string | undefined;
  preparedKeys: number;
  quiet: boolean;
  json: boolean;
}

/** The unparsed options of `custos sandbox` and `custos mock`. */
export interface SandboxFlags {
  host?: string;
  port?: string;
  data?: string;
  load?: string;
  seed?: string;
  clock?: string;
  seedData?: boolean;
  prefix?: string;
  appId?: string;
  appSecret?: string;
  jwtKey?: string;
  plainHttp?: boolean;
  confirmAfter?: string;
  rpc?: string[];
  swapRouter?: string[];
  rewardDistributor?: string[];
  merklUrl?: string;
  record?: string;
  audit?: string;
  hints?: boolean;
  controlToken?: string;
  readyFile?: string;
  preparedKeys?: string;
  quiet?: boolean;
  json?: boolean;
  rateLimit?: string;
  adminPort?: string;
  publicUrl?: string[];
  logLevel?: string;
}

/** Settings of `custos serve`. */
export interface ServeConfig extends ListenConfig {
  databaseUrl: string;
  databasePoolSize: number;
  /** A streaming replica of the database that lists are read from. */
  replicaUrl: string | undefined;
  adminHost: string;
  /** Undefined: a trusted proxy terminates TLS. */
  tls: { cert: string; key: string } | undefined;
  readCertificate: () => { cert: string; key: string } | undefined;
  trustedProxies: readonly string[];
  /** Limits of open connections; `perAddress` is undefined without a limit. */
  connections: { total: number; perAddress: number | undefined };
  /** Users that an app may create per minute; 0: no separate limit. */
  usersPerMinute: number;
  signer: signer.SignerSettings;
  /** The available chains. */
  rpc: readonly chains.RpcEndpoints[];
  /** The swap router of each chain that has one, by CAIP-2 id. */
  swapRouters: ReadonlyMap<string, chains.RouterEntry>;
  rewards: chains.RewardSettings;
  /** The configured environments of the fiat provider `bridge`. */
  bridge: readonly BridgeSettings[];
  responseCheck: 'off' | 'sampled' | 'always';
  /** The share of the requests without an error that are logged. */
  loggedShare: number;
  automationFeeShare: number;
  /** Undefined: no traces and metrics are sent. */
  telemetry: TelemetrySettings | undefined;
  /** How long the server reports that it is not ready before it stops accepting connections. */
  drainMs: number;
  /** Processes that share the port. */
  workers: number;
  /** What a server does that starts on a promoted replica: hold changes, or trust that none were lost. */
  afterPromotion: 'hold' | 'trust';
  checkpointFile: string | undefined;
}

/** The database of a command that needs nothing else. */
export type DatabaseConfig = { kind: 'postgres'; url: string } | { kind: 'folder'; folder: string };

type Environment = check.Environment;

/**
 * Reads the settings of a sandbox from the command line.
 *
 * Throws ConfigError listing every fault.
 */
export function readSandboxConfig(flags: SandboxFlags): Readonly<SandboxConfig> {
  const faults: string[] = [];
  const endpoints = chains.rpcEndpoints(faults, '--rpc', flags.rpc ?? []);
  const config: SandboxConfig = {
    host: flags.host ?? '127.0.0.1',
    port: check.port(faults, '--port', flags.port ?? '4010'),
    adminPort:
      flags.adminPort === undefined ? undefined : check.port(faults, '--admin-port', flags.adminPort),
    prefix: check.prefix(faults, '--prefix', flags.prefix ?? 'service'),
    publicUrls: check.publicUrls(faults, '--public-url', flags.publicUrl ?? []),
    rateLimit: check.rateLimit(faults, '--rate-limit', flags.rateLimit ?? '0'),
    admission: sandboxAdmission,
    logLevel: check.oneOf(faults, '--log-level', flags.logLevel ?? 'info', logLevels),
    dataFolder: flags.data === undefined ? undefined : resolve(flags.data),
    load: flags.load,
    seed: flags.seed,
    clock: flags.clock === undefined ? undefined : check.clockStart(faults, '--clock', flags.clock),
    seedData: flags.seedData ?? false,
    appId: flags.appId,
    appSecret: check.secretText(faults, '--app-secret', flags.appSecret, 8),
    jwtPublicKeyPem:
      flags.jwtKey === undefined ? undefined : check.publicKeyFile(faults, '--jwt-key', flags.jwtKey),
    plainHttp: flags.plainHttp ?? false,
    confirmAfterMs:
      flags.confirmAfter === undefined
        ? undefined
        : check.count(faults, '--confirm-after', flags.confirmAfter, { least: 0, most: 86_400_000 }),
    rpc: endpoints,
    swapRouters: chains.routers(faults, '--swap-router', { entries: flags.swapRouter ?? [], endpoints }),
    rewards: chains.rewards(
      faults,
      { distributors: '--reward-distributor', url: '--merkl-url' },
      { entries: flags.rewardDistributor ?? [], endpoints, url: flags.merklUrl, apiKey: undefined },
    ),
    record: check.oneOf(faults, '--record', flags.record ?? 'on', ['on', 'off']) === 'on',
    audit: check.oneOf(faults, '--audit', flags.audit ?? 'on', ['on', 'off']) === 'on',
    hints: flags.hints ?? true,
    controlToken: check.secretText(faults, '--control-token', flags.controlToken, 16),
    readyFile: flags.readyFile === undefined ? undefined : resolve(flags.readyFile),
    preparedKeys: check.count(faults, '--prepared-keys', flags.preparedKeys ?? String(PREPARED_KEYS), {
      least: 0,
      most: 10_000,
    }),
    quiet: flags.quiet ?? false,
    json: flags.json ?? false,
  };
  if (config.appId !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(config.appId)) {
    faults.push(
      '--app-id: expected 1 to 64 letters, digits, `-` or `_`, as it is the user name of HTTP Basic authentication',
    );
  }
  throwIfAny(faults, 'invalid options:');
  return Object.freeze(config);
}

// All settings of `custos serve`. Any other name that starts with CUSTOS_ is refused as a typo.
const serveNames = [
  'CUSTOS_HOST',
  'CUSTOS_PORT',
  'CUSTOS_ADMIN_HOST',
  'CUSTOS_ADMIN_PORT',
  'CUSTOS_WORKERS',
  'CUSTOS_DATABASE_POOL',
  'CUSTOS_DATABASE_REPLICA_URL',
  'CUSTOS_TLS_CERT',
  'CUSTOS_TLS_KEY',
  'CUSTOS_TRUST_PROXY',
  'CUSTOS_PUBLIC_URLS',
  'CUSTOS_PREFIX',
  'CUSTOS_RATE_LIMIT',
  'CUSTOS_USERS_PER_MINUTE',
  'CUSTOS_MAX_CONNECTIONS',
  'CUSTOS_CONNECTIONS_PER_ADDRESS',
  'CUSTOS_MAX_REQUESTS',
  'CUSTOS_CONCURRENT_READS',
  'CUSTOS_CONCURRENT_WRITES',
  'CUSTOS_CONCURRENT_SIGNING',
  'CUSTOS_MAX_DELAY_MS',
  'CUSTOS_RESPONSE_CHECK',
  'CUSTOS_RPC',
  'CUSTOS_SWAP_ROUTERS',
  'CUSTOS_REWARD_DISTRIBUTORS',
  'CUSTOS_MERKL_URL',
  'CUSTOS_MERKL_API_KEY',
  'CUSTOS_FEE_CEILINGS',
  'CUSTOS_CONFIRMATIONS',
  'CUSTOS_AFTER_PROMOTION',
  'CUSTOS_CHECKPOINT_FILE',
  'CUSTOS_DRAIN_SECONDS',
  'CUSTOS_LOG_LEVEL',
  ...check.shareSettings,
  'CUSTOS_SEED',
  ...fiatNames,
  ...signer.signerNames,
  ...telemetryNames,
];

/**
 * Reads the settings of a production server from the environment.
 *
 * Throws ConfigError listing everything that is missing or invalid.
 */
export function readServeConfig(
  flags: { seed?: string; rpc?: string[]; workers?: string } = {},
  env: Environment = process.env,
): Readonly<ServeConfig> {
  const faults: string[] = [];
  const known: readonly string[] = [...serveNames, ...Object.values(clientNames)];
  const unknown = Object.keys(env).filter((name) => name.startsWith('CUSTOS_') && !known.includes(name));
  for (const name of unknown) faults.push(`${name} is not a setting; see \`custos serve --help\``);
  if (flags.seed !== undefined || env.CUSTOS_SEED !== undefined) {
    faults.push('a seed makes keys and ids predictable and is only supported by `custos sandbox --seed`');
  }
  const trustedProxies = check.proxies(faults, 'CUSTOS_TRUST_PROXY', env.CUSTOS_TRUST_PROXY ?? '');
  const databasePoolSize = check.count(faults, 'CUSTOS_DATABASE_POOL', env.CUSTOS_DATABASE_POOL ?? '10', {
    least: 1,
    most: 1000,
  });
  const endpoints = chains.rpcEndpoints(faults, 'CUSTOS_RPC', [
    ...check.words(env.CUSTOS_RPC),
    ...(flags.rpc ?? []),
  ]);
  const config: ServeConfig = {
    databaseUrl: check.databaseUrl(faults, env.DATABASE_URL),
    databasePoolSize,
    replicaUrl: check.replicaUrl(faults, env.CUSTOS_DATABASE_REPLICA_URL),
    admission: admission(faults, env, databasePoolSize),
    host: env.CUSTOS_HOST ?? '0.0.0.0',
    port: check.port(faults, 'CUSTOS_PORT', env.CUSTOS_PORT ?? '8443'),
    adminHost: env.CUSTOS_ADMIN_HOST ?? '127.0.0.1',
    adminPort:
      env.CUSTOS_ADMIN_PORT === 'off'
        ? undefined
        : check.port(faults, 'CUSTOS_ADMIN_PORT', env.CUSTOS_ADMIN_PORT ?? '9464'),
    prefix: check.prefix(faults, 'CUSTOS_PREFIX', env.CUSTOS_PREFIX ?? 'service'),
    publicUrls: check.publicUrls(faults, 'CUSTOS_PUBLIC_URLS', check.items(env.CUSTOS_PUBLIC_URLS)),
    rateLimit: check.rateLimit(faults, 'CUSTOS_RATE_LIMIT', env.CUSTOS_RATE_LIMIT ?? '100'),
    // The only limit with a published value.
    usersPerMinute: check.count(faults, 'CUSTOS_USERS_PER_MINUTE', env.CUSTOS_USERS_PER_MINUTE ?? '240', {
      least: 0,
      most: 1_000_000,
    }),
    logLevel: check.oneOf(faults, 'CUSTOS_LOG_LEVEL', env.CUSTOS_LOG_LEVEL ?? 'info', logLevels),
    telemetry: telemetrySettings(faults, env),
    ...check.shares(faults, env),
    connections: check.connections(faults, env, trustedProxies.length > 0),
    ...check.certificate(faults, env, trustedProxies.length > 0),
    trustedProxies,
    signer: signer.signerSettings(faults, env),
    // Endpoints from the environment and the option are combined.
    rpc: chains.confirmations(faults, 'CUSTOS_CONFIRMATIONS', {
      entries: check.words(env.CUSTOS_CONFIRMATIONS),
      endpoints: chains.feeCeilings(faults, 'CUSTOS_FEE_CEILINGS', {
        entries: check.words(env.CUSTOS_FEE_CEILINGS),
        endpoints,
      }),
    }),
    swapRouters: chains.routers(faults, 'CUSTOS_SWAP_ROUTERS', {
      entries: check.words(env.CUSTOS_SWAP_ROUTERS),
      endpoints,
    }),
    rewards: chains.rewards(
      faults,
      { distributors: 'CUSTOS_REWARD_DISTRIBUTORS', url: 'CUSTOS_MERKL_URL' },
      {
        ...{ entries: check.words(env.CUSTOS_REWARD_DISTRIBUTORS), endpoints },
        ...{ url: env.CUSTOS_MERKL_URL, apiKey: env.CUSTOS_MERKL_API_KEY },
      },
    ),
    ...check.restoreSettings(faults, env),
    workers: check.count(faults, 'CUSTOS_WORKERS', flags.workers ?? env.CUSTOS_WORKERS ?? '1', {
      least: 1,
      most: 64,
    }),
    bridge: bridgeSettings(faults, env),
    drainMs: check.drainMs(faults, env),
    responseCheck: check.responseCheck(faults, env),
  };
  if (config.publicUrls.length === 0) {
    faults.push(
      'CUSTOS_PUBLIC_URLS is missing: the base URLs that clients sign, e.g. `https://api.example.com`',
    );
  }
  throwIfAny(faults, 'the server cannot start with these settings:');
  return Object.freeze(config);
}

/** Reads the settings of a signer. Throws ConfigError. */
export function readSignerConfig(env: Environment = process.env): signer.SignerConfig {
  const faults: string[] = [];
  const keys = signer.signerConfig(faults, env);
  throwIfAny(faults, 'the signer cannot start with these settings:');
  return keys;
}

export const ownSignerSettings = (env: Environment = process.env) => signer.ownSignerSettings(env);

/** Reads the settings of `custos keys rotate` from the same environment. Throws ConfigError. */
export function readKeysConfig(env: Environment = process.env): {
  databaseUrl: string;
  vault: signer.VaultSettings;
} {
  const faults: string[] = [];
  const config = {
    databaseUrl: check.databaseUrl(faults, env.DATABASE_URL),
    vault: signer.vaultSettings(faults, env),
  };
  throwIfAny(faults, 'the keys cannot be rotated with these settings:');
  return config;
}

/** The database of `custos migrate` and `custos apps`: a sandbox's folder if given, otherwise DATABASE_URL. */
export function readDatabaseConfig(flags: { data?: string }, env: Environment = process.env): DatabaseConfig {
  if (flags.data !== undefined) return { kind: 'folder', folder: resolve(flags.data) };
  const faults: string[] = [];
  const url = check.databaseUrl(faults, env.DATABASE_URL);
  throwIfAny(faults, 'no database is configured:');
  return { kind: 'postgres', url };
}

/** The operator's secret for the admin port of a running server, from `CUSTOS_OPERATOR_SECRET`. Throws ConfigError. */
export function readOperatorSecret(env: Environment = process.env): string | undefined {
  const secret = env.CUSTOS_OPERATOR_SECRET;
  if (secret === undefined || /^[\x21-\x7e]{1,256}$/.test(secret)) return secret;
  const fault = 'CUSTOS_OPERATOR_SECRET: expected printable ASCII without spaces';
  throw new ConfigError('invalid setting:', [fault]);
}

/** Nodes of chains. */
export interface NodesConfig {
  readonly rpc: readonly chains.RpcEndpoints[];
}

/** The nodes in `CUSTOS_RPC` and `--rpc`. Throws ConfigError. */
export function readNodesConfig(flags: { rpc?: string[] }, env: Environment = process.env): NodesConfig {
  const faults: string[] = [];
  const rpc = chains.rpcEndpoints(faults, 'CUSTOS_RPC', [
    ...check.words(env.CUSTOS_RPC),
    ...(flags.rpc ?? []),
  ]);
  throwIfAny(faults, 'no nodes can be used:');
  return { rpc };
}

function throwIfAny(faults: readonly string[], summary: string): void {
  if (faults.length > 0) throw new ConfigError(summary, faults);
}
