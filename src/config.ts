import { resolve } from 'node:path';
import * as check from './config-checks.ts';

/** The settings are wrong or incomplete. Its text names every fault, one a line, with what to do about it. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(summary: string, faults: readonly string[]) {
    super([summary, ...faults.map((fault) => `  - ${fault}`)].join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];
export type ResponseCheck = 'off' | 'sampled' | 'always';

/** How a server listens and speaks: what every command that serves has in common. */
export interface ListenConfig {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Where `/metrics` is served; undefined: nowhere. */
  adminPort: number | undefined;
  /** The word that stands for `service` on the wire. */
  prefix: string;
  /** Base URLs under which clients sign their requests, beside the one of the request itself. No trailing slash. */
  publicUrls: readonly string[];
  rateLimit: check.RateLimit | undefined;
  logLevel: LogLevel;
}

/** Settings of `custos sandbox` and `custos mock`. */
export interface SandboxConfig extends ListenConfig {
  /** Absolute path; undefined: in memory. */
  dataFolder: string | undefined;
  seed: string | undefined;
  seedData: boolean;
  appId: string | undefined;
  appSecret: string | undefined;
  /** SPKI PEM of the key that signs the users' tokens. */
  jwtPublicKeyPem: string | undefined;
  plainHttp: boolean;
  /** How long simulated chains take to confirm a transaction; undefined: until their next block. */
  confirmAfterMs: number | undefined;
  /** The chains that are asked of real nodes; all others are simulated. */
  rpc: readonly check.RpcEndpoints[];
  readyFile: string | undefined;
  quiet: boolean;
  json: boolean;
}

/** The command line of `custos sandbox` and `custos mock`, as given. */
export interface SandboxFlags {
  host?: string;
  port?: string;
  data?: string;
  seed?: string;
  seedData?: boolean;
  prefix?: string;
  appId?: string;
  appSecret?: string;
  jwtKey?: string;
  plainHttp?: boolean;
  confirmAfter?: string;
  rpc?: string[];
  readyFile?: string;
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
  adminHost: string;
  /** Undefined: a trusted proxy ends TLS. */
  tls: { cert: string; key: string } | undefined;
  trustedProxies: readonly string[];
  /** Connections kept open at once; `perAddress` is undefined where there is no such limit. */
  connections: { total: number; perAddress: number | undefined };
  /** Users that an app may make a minute; 0 is no limit of its own. */
  usersPerMinute: number;
  masterKeys: check.MasterKeySettings;
  /** The chains that can be asked; there are no others. */
  rpc: readonly check.RpcEndpoints[];
  responseCheck: ResponseCheck;
  /** How long the server answers that it is not ready before it stops accepting. */
  drainMs: number;
}

/** Where a command that only needs the database finds it. */
export type DatabaseConfig = { kind: 'postgres'; url: string } | { kind: 'folder'; folder: string };

type Environment = check.Environment;

/**
 * Settings of a sandbox from its command line.
 *
 * Throws ConfigError with every fault.
 */
export function readSandboxConfig(flags: SandboxFlags): Readonly<SandboxConfig> {
  const faults: string[] = [];
  const config: SandboxConfig = {
    host: flags.host ?? '127.0.0.1',
    port: check.port(faults, '--port', flags.port ?? '4010'),
    adminPort:
      flags.adminPort === undefined ? undefined : check.port(faults, '--admin-port', flags.adminPort),
    prefix: check.prefix(faults, '--prefix', flags.prefix ?? 'service'),
    publicUrls: check.publicUrls(faults, '--public-url', flags.publicUrl ?? []),
    rateLimit: check.rateLimit(faults, '--rate-limit', flags.rateLimit ?? '0'),
    logLevel: check.oneOf(faults, '--log-level', flags.logLevel ?? 'info', logLevels),
    dataFolder: flags.data === undefined ? undefined : resolve(flags.data),
    seed: flags.seed,
    seedData: flags.seedData ?? false,
    appId: flags.appId,
    appSecret: flags.appSecret,
    jwtPublicKeyPem:
      flags.jwtKey === undefined ? undefined : check.publicKeyFile(faults, '--jwt-key', flags.jwtKey),
    plainHttp: flags.plainHttp ?? false,
    confirmAfterMs:
      flags.confirmAfter === undefined
        ? undefined
        : check.count(faults, '--confirm-after', flags.confirmAfter, { least: 0, most: 86_400_000 }),
    rpc: check.rpcEndpoints(faults, '--rpc', flags.rpc ?? []),
    readyFile: flags.readyFile === undefined ? undefined : resolve(flags.readyFile),
    quiet: flags.quiet ?? false,
    json: flags.json ?? false,
  };
  if (config.appId !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(config.appId)) {
    faults.push('--app-id must be 1 to 64 letters, digits, `-` or `_`: it is the user name of HTTP Basic');
  }
  if (config.appSecret !== undefined && !/^[\x21-\x7e]{8,256}$/.test(config.appSecret)) {
    faults.push('--app-secret must be 8 to 256 printable ASCII characters without spaces');
  }
  failOn(faults, 'these options cannot be used:');
  return Object.freeze(config);
}

// Every name that `custos serve` understands; any other CUSTOS_… is a slip of the pen and is refused.
const serveNames = [
  'CUSTOS_HOST',
  'CUSTOS_PORT',
  'CUSTOS_ADMIN_HOST',
  'CUSTOS_ADMIN_PORT',
  'CUSTOS_DATABASE_POOL',
  'CUSTOS_TLS_CERT',
  'CUSTOS_TLS_KEY',
  'CUSTOS_TRUST_PROXY',
  'CUSTOS_MASTER_KEY',
  'CUSTOS_MASTER_KEY_FILE',
  'CUSTOS_PREVIOUS_MASTER_KEYS',
  'CUSTOS_KMS_URL',
  'CUSTOS_KMS_KEY',
  'CUSTOS_KMS_TOKEN',
  'CUSTOS_PUBLIC_URLS',
  'CUSTOS_PREFIX',
  'CUSTOS_RATE_LIMIT',
  'CUSTOS_USERS_PER_MINUTE',
  'CUSTOS_MAX_CONNECTIONS',
  'CUSTOS_CONNECTIONS_PER_ADDRESS',
  'CUSTOS_RESPONSE_CHECK',
  'CUSTOS_RPC',
  'CUSTOS_DRAIN_SECONDS',
  'CUSTOS_LOG_LEVEL',
  'CUSTOS_SEED',
];

/**
 * Settings of a production server from the environment.
 *
 * Throws ConfigError that names everything missing and everything wrong at once.
 */
export function readServeConfig(
  flags: { seed?: string; rpc?: string[] } = {},
  env: Environment = process.env,
): Readonly<ServeConfig> {
  const faults: string[] = [];
  const unknown = Object.keys(env).filter((name) => name.startsWith('CUSTOS_') && !serveNames.includes(name));
  for (const name of unknown) faults.push(`${name} is not a setting; see \`custos serve --help\``);
  if (flags.seed !== undefined || env.CUSTOS_SEED !== undefined) {
    faults.push(
      'a seed makes keys and ids guessable and is refused here; it belongs to `custos sandbox --seed`',
    );
  }
  const trustedProxies = check.proxies(faults, 'CUSTOS_TRUST_PROXY', env.CUSTOS_TRUST_PROXY ?? '');
  const config: ServeConfig = {
    databaseUrl: check.databaseUrl(faults, env.DATABASE_URL),
    databasePoolSize: check.count(faults, 'CUSTOS_DATABASE_POOL', env.CUSTOS_DATABASE_POOL ?? '10', {
      least: 1,
      most: 1000,
    }),
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
    // The one limit with a published number.
    usersPerMinute: check.count(faults, 'CUSTOS_USERS_PER_MINUTE', env.CUSTOS_USERS_PER_MINUTE ?? '240', {
      least: 0,
      most: 1_000_000,
    }),
    logLevel: check.oneOf(faults, 'CUSTOS_LOG_LEVEL', env.CUSTOS_LOG_LEVEL ?? 'info', logLevels),
    connections: check.connections(faults, env, trustedProxies.length > 0),
    tls: check.tls(faults, env, trustedProxies.length > 0),
    trustedProxies,
    masterKeys: check.masterKeys(faults, env),
    // The option and the environment together.
    rpc: check.rpcEndpoints(faults, 'CUSTOS_RPC', [
      ...(env.CUSTOS_RPC ?? '').split(/\s+/).filter((entry) => entry !== ''),
      ...(flags.rpc ?? []),
    ]),
    drainMs:
      1000 *
      check.count(faults, 'CUSTOS_DRAIN_SECONDS', env.CUSTOS_DRAIN_SECONDS ?? '5', { least: 0, most: 300 }),
    responseCheck: check.oneOf(faults, 'CUSTOS_RESPONSE_CHECK', env.CUSTOS_RESPONSE_CHECK ?? 'sampled', [
      'off',
      'sampled',
      'always',
    ] as const),
  };
  if (config.publicUrls.length === 0) {
    faults.push(
      'CUSTOS_PUBLIC_URLS is missing: the base URLs that clients sign, e.g. `https://api.example.com`',
    );
  }
  failOn(faults, 'the server cannot start with these settings:');
  return Object.freeze(config);
}

/** What `custos keys rotate` needs of the same environment. Throws ConfigError. */
export function readKeysConfig(env: Environment = process.env): {
  databaseUrl: string;
  masterKeys: check.MasterKeySettings;
} {
  const faults: string[] = [];
  const config = {
    databaseUrl: check.databaseUrl(faults, env.DATABASE_URL),
    masterKeys: check.masterKeys(faults, env),
  };
  failOn(faults, 'the keys cannot be rotated with these settings:');
  return config;
}

/** The database of `custos migrate` and `custos apps`: a sandbox's folder when given, else DATABASE_URL. */
export function readDatabaseConfig(flags: { data?: string }, env: Environment = process.env): DatabaseConfig {
  if (flags.data !== undefined) return { kind: 'folder', folder: resolve(flags.data) };
  const faults: string[] = [];
  const url = check.databaseUrl(faults, env.DATABASE_URL);
  failOn(faults, 'no database to work on:');
  return { kind: 'postgres', url };
}

function failOn(faults: readonly string[], summary: string): void {
  if (faults.length > 0) throw new ConfigError(summary, faults);
}
