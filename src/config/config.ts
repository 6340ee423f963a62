import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type AdmissionSettings, admission, sandboxAdmission } from './admission.ts';
import type { CellDatabase, CellsSettings } from './cells.ts';
import { cellsOf, databaseOfCell, ONLY_CELL, unknownCell } from './cells.ts';
import * as chains from './chains.ts';
import * as check from './checks.ts';
import type { ConfigFile } from './config-file.ts';
import { bridgeSettings } from './fiat.ts';
import { type Command, type Reader, readerOf } from './setting.ts';
import {
  clientSettings,
  type SettingFlags,
  type Settings,
  settings,
  variableNames,
  variablesOf,
} from './settings.ts';
import * as signer from './signer.ts';
import { telemetrySettings } from './telemetry.ts';

/** Thrown when settings are invalid or incomplete. The message lists every fault on its own line. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(summary: string, faults: readonly string[]) {
    super([summary, ...faults.map((fault) => `  - ${fault}`)].join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/** Thrown when a command needs a database and its settings name none. */
export class NoDatabaseError extends ConfigError {}

type Environment = check.Environment;

/** The unparsed options of `custos sandbox`, `custos exec` and `custos mock`. */
export type SandboxFlags = SettingFlags;

/** Settings of `custos sandbox`, `custos exec` and `custos mock`. */
export type SandboxConfig = ReturnType<typeof readSandboxConfig>;

/** Settings of `custos serve`. */
export type ServeConfig = ReturnType<typeof readServeConfig>;

/** The address of the database, for commands that need no other setting. */
export type DatabaseConfig = CellDatabase | { kind: 'folder'; folder: string };

function listenSettings<C extends 'serve' | 'sandbox' | 'exec' | 'mock'>({ value }: Reader<Settings, C>) {
  return {
    host: value('host'),
    /** The port. 0 selects a free port. */
    port: value('port'),
    /** The port of `/metrics`. Undefined if it is not served. */
    adminPort: value('adminPort'),
    /** The prefix that replaces `service` in messages. */
    prefix: value('prefix'),
    /**
     * The base URLs under which clients sign requests, in addition to the request's own. They have no trailing slash.
     */
    publicUrls: value('publicUrl'),
    /** The rate limits. Undefined means no limit. */
    rateLimit: value('rateLimit'),
    logLevel: value('logLevel'),
  };
}

/** Returns the contracts on chains that have nodes. Simulated chains have their own contracts. */
function contractSettings<C extends 'serve' | 'sandbox' | 'exec' | 'mock'>(
  { faults, name, value }: Reader<Settings, C>,
  endpoints: readonly chains.RpcEndpoints[],
) {
  return {
    /** The swap router of each chain that has one, by CAIP-2 id. */
    swapRouters: chains.routers(faults, name('swapRouter'), { entries: value('swapRouter'), endpoints }),
    rewards: {
      distributors: chains.contracts(faults, name('rewardDistributor'), {
        ...{ entries: value('rewardDistributor'), endpoints, kind: 'reward distributor' },
      }),
      url: value('merklUrl'),
      apiKey: value('merklApiKey') as string | undefined,
    } satisfies chains.RewardSettings,
  };
}

/**
 * Reads the settings of a sandbox from the command line, and from a file where the command line does not give them.
 *
 * @throws ConfigError that lists every fault.
 */
export function readSandboxConfig(
  given: SandboxFlags,
  command: 'sandbox' | 'exec' | 'mock' = 'sandbox',
  file?: ConfigFile | undefined,
) {
  const flags = { ...file?.settings, ...given };
  const isOfFile = (key: string): boolean => !Object.hasOwn(given, key) && Object.hasOwn(flags, key);
  const nameIn = (key: string): string | undefined => (isOfFile(key) ? `${file?.name}: /${key}` : undefined);
  const reader = readerOf(settings, command, { flags, nameIn });
  const { faults, value } = reader;
  const rpc = value('rpc');
  const forks = value('fork');
  for (const { caip2 } of forks) {
    if (rpc.some((each) => each.caip2 === caip2)) {
      faults.push(`--fork: \`${caip2}\` has nodes by --rpc, so it is not simulated`);
    }
  }
  const config = {
    ...listenSettings(reader),
    /** The settings of admission control. Undefined admits everything. */
    admission: sandboxAdmission as Readonly<AdmissionSettings> | undefined,
    /** The absolute path of the data folder. Undefined keeps the data in memory. */
    dataFolder: value('data'),
    /** The snapshot to start with: a file, or a name in the data folder. */
    load: value('load'),
    seed: value('seed'),
    /** How the clock starts: running, or frozen at a time in Unix ms. */
    clock: value('clock'),
    seedData: flags.seedData ?? false,
    /** Whether the seed data has ten wallets with funds, in place of four without. */
    funds: flags.seedData === true && flags.funds !== false,
    fundNewWallets: flags.fundNewWallets ?? false,
    appId: value('appId'),
    appSecret: value('appSecret'),
    /** The SPKI PEM of the key that signs the users' tokens. */
    jwtPublicKeyPem: value('jwtKey'),
    plainHttp: flags.plainHttp ?? false,
    /** The port of JSON-RPC over plain HTTP. 0 selects a free port; undefined means none. */
    rpcPort: value('rpcPort') as number | undefined,
    /** How long simulated chains take to confirm a transaction. Undefined means until the next block. */
    confirmAfterMs: value('confirmAfter'),
    /** The chains backed by real nodes; all others are simulated. */
    rpc,
    /** The simulated chains that continue real ones. */
    forks,
    /**
     * The folder for the state of the real chains that forks continue. All sandboxes of a user share it, because the
     * state at a block never changes.
     */
    forkFolder: join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'custos', 'forks'),
    ...contractSettings(reader, [...rpc, ...forks.map(({ caip2, url }) => ({ caip2, urls: [url] }))]),
    /** Whether requests are recorded for `/_sandbox/requests`. */
    record: value('record') === 'on',
    /**
     * Whether requests and jobs are recorded in the audit log, as in production. Actions of operators are always
     * recorded.
     */
    audit: value('audit') === 'on',
    /** Whether error responses contain `data.hint`. */
    hints: flags.hints ?? true,
    /**
     * The token that callers on other machines send to the control plane. When undefined, it is generated if other
     * machines can reach the sandbox.
     */
    controlToken: value('controlToken'),
    readyFile: value('readyFile'),
    preparedKeys: value('preparedKeys'),
    quiet: flags.quiet ?? false,
    json: flags.json ?? false,
    /** The file that declares settings and resources, if there is one. */
    file,
  };
  if (config.appId !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(config.appId)) {
    faults.push(
      `${reader.name('appId')}: expected 1 to 64 letters, digits, \`-\` or \`_\`, as it is the user name of HTTP Basic authentication`,
    );
  }
  throwIfAny(faults, 'invalid options:');
  return Object.freeze(config);
}

/**
 * Reads the settings of a production server from the environment.
 *
 * @throws ConfigError that lists everything missing or invalid.
 */
export function readServeConfig(
  flags: { seed?: string; rpc?: string[]; workers?: string } = {},
  env: Environment = process.env,
) {
  const reader = readerOf(settings, 'serve', { env, flags });
  const { faults, name, value } = reader;
  faults.push(...unknownNames(env));
  if (flags.seed !== undefined || env.CUSTOS_SEED !== undefined) {
    faults.push('a seed makes keys and ids predictable and is only supported by `custos sandbox --seed`');
  }
  const trustedProxies = value('trustProxy');
  const isBehindProxy = trustedProxies.length > 0;
  const databasePoolSize = value('databasePool');
  const endpoints = value('rpc');
  const config = {
    ...listenSettings(reader),
    cells: serveCells(reader, env),
    /** The settings of admission control. Undefined admits everything. */
    admission: admission(reader, databasePoolSize),
    adminHost: value('adminHost'),
    /** The number of users that an app may create per minute. 0 means no separate limit. */
    usersPerMinute: value('usersPerMinute'),
    /** Where traces and metrics are sent. Undefined if none are. */
    telemetry: telemetrySettings(reader, env),
    automationFeeShare: value('automationFeeShare'),
    /** The share of the successful requests that are logged. */
    loggedShare: value('logRequests'),
    /** The limits of open connections. `perAddress` is undefined without a limit. */
    connections: {
      total: value('maxConnections'),
      // Behind a proxy, all connections come from the proxy's address.
      perAddress: (value('connectionsPerAddress') ?? (isBehindProxy ? 0 : 1000)) || undefined,
    },
    /** `tls` is undefined if a trusted proxy terminates TLS. */
    ...check.certificate(faults, { certPath: value('tlsCert'), keyPath: value('tlsKey') }, isBehindProxy),
    trustedProxies,
    signer: signer.signerSettings(reader, env),
    /** The chains that have nodes. */
    rpc: chains.confirmations(faults, name('confirmations'), {
      entries: value('confirmations'),
      endpoints: chains.feeCeilings(faults, name('feeCeilings'), {
        entries: value('feeCeilings'),
        endpoints,
      }),
    }),
    ...contractSettings(reader, endpoints),
    /** Whether a server that starts on a promoted replica refuses changes, or trusts that none were lost. */
    afterPromotion: value('afterPromotion'),
    /** The number of processes that share the port. */
    workers: value('workers'),
    /** The configured environments of the fiat provider `bridge`. */
    bridge: bridgeSettings(faults, env),
    /** How long the server reports that it is not ready before it stops accepting connections. */
    drainMs: 1000 * value('drainSeconds'),
    responseCheck: value('responseCheck'),
  };
  if (config.publicUrls.length === 0) {
    faults.push(
      'CUSTOS_PUBLIC_URLS is missing: the base URLs that clients sign, e.g. `https://api.example.com`',
    );
  }
  throwIfAny(faults, 'the server cannot start with these settings:');
  return Object.freeze(config);
}

/** Returns the databases of a server, with the limits of the work that each of them accepts concurrently. */
function serveCells(reader: Reader<Settings, 'serve'>, env: Environment) {
  const { value } = reader;
  const poolSize = value('databasePool');
  const cells = cellsOf(reader, env, poolSize) ?? {
    directoryUrl: undefined,
    cells: [
      {
        ...{ name: ONLY_CELL, databaseUrl: databaseUrlOf(reader), poolSize, acceptsApps: true },
        ...{ replicaUrl: value('databaseReplicaUrl'), checkpointFile: value('checkpointFile') },
      },
    ],
  };
  const limits = cells.cells.map((cell) => [cell.name, admission(reader, cell.poolSize)] as const);
  return { ...(cells as CellsSettings), admission: new Map(limits) };
}

/** Records every other name that starts with CUSTOS_ as a fault, because it is probably a typo. */
function unknownNames(env: Environment): string[] {
  const ofClients = Object.values(clientSettings).flatMap(variableNames);
  const known = [...variablesOf('serve'), ...ofClients, 'CUSTOS_SEED'];
  return Object.keys(env)
    .filter((name) => name.startsWith('CUSTOS_') && !known.includes(name))
    .map((name) => `${name} is not a setting; see \`custos serve --help\``);
}

/**
 * Reads the settings of a signer.
 *
 * @throws ConfigError
 */
export function readSignerConfig(env: Environment = process.env): signer.SignerConfig {
  const reader = readerOf(settings, 'signer', { env });
  const config = signer.signerConfig(reader, env);
  throwIfAny(reader.faults, 'the signer cannot start with these settings:');
  return config;
}

export const ownSignerSettings = (env: Environment = process.env) => signer.ownSignerSettings(env);

/**
 * Reads the settings of `custos keys rotate` from the same environment.
 *
 * @throws ConfigError
 */
export function readKeysConfig(env: Environment = process.env): {
  keyStore: signer.KeyStoreSettings;
  cells: CellsSettings;
} {
  const reader = readerOf(settings, 'keys', { env });
  const config = { cells: commandCells(reader, env), keyStore: signer.keyStoreSettings(reader, env) };
  throwIfAny(reader.faults, 'the keys cannot be used with these settings:');
  return config;
}

/**
 * Reads the databases of a deployment: the ones in the cells file, or the one in DATABASE_URL.
 *
 * @throws ConfigError
 */
export function readCells(env: Environment = process.env): CellsSettings {
  const reader = readerOf(settings, 'migrate', { env });
  const cells = commandCells(reader, env);
  if (reader.faults.length > 0 && !(env.DATABASE_URL || env.CUSTOS_CELLS_FILE))
    throw new NoDatabaseError('no database is configured:', reader.faults);
  throwIfAny(reader.faults, 'the databases cannot be used with these settings:');
  return cells;
}

function commandCells(reader: Reader<Settings, 'keys' | 'migrate'>, env: Environment): CellsSettings {
  const cells = cellsOf(reader, env, 1);
  if (cells !== undefined) return cells;
  const only = { name: ONLY_CELL, databaseUrl: databaseUrlOf(reader), poolSize: 1, acceptsApps: true };
  return { directoryUrl: undefined, cells: [only] };
}

/**
 * Returns the path of the cells file.
 *
 * @throws ConfigError when CUSTOS_CELLS_FILE is missing.
 */
export function readCellsPath(env: Environment = process.env): string {
  const { faults, name, value } = readerOf(settings, 'migrate', { env });
  const path = value('cellsFile');
  if (path === undefined) faults.push(`${name('cellsFile')} is missing: the path of the cells file`);
  throwIfAny(faults, 'no cells are configured:');
  return path!;
}

/** The options that choose the database of a command. */
export interface DatabaseFlags {
  /** The data folder of a sandbox. */
  readonly data?: string;
  readonly cell?: string;
}

/**
 * Reads the database of a command: the given folder of a sandbox, or else that of the given cell, or else DATABASE_URL.
 *
 * @throws ConfigError, also when the cells file names several cells and none is chosen.
 */
export function readDatabaseConfig(flags: DatabaseFlags, env: Environment = process.env): DatabaseConfig {
  const [chosen, ...others] = readDatabases(flags, env);
  if (chosen !== undefined && others.length === 0) return chosen.config;
  throw new ConfigError('invalid option:', [unknownCell(readCells(env).cells, flags.cell)]);
}

/** Returns the databases on which a command acts: the given folder or cell, or else all. Throws ConfigError. */
export function readDatabases(
  { data, cell }: DatabaseFlags,
  env: Environment = process.env,
): readonly { readonly cell: string; readonly config: DatabaseConfig }[] {
  if (data !== undefined) return [{ cell: ONLY_CELL, config: { kind: 'folder', folder: resolve(data) } }];
  const all = readCells(env).cells;
  const chosen = cell === undefined ? all : all.filter(({ name }) => name === cell);
  if (chosen.length === 0) throw new ConfigError('invalid option:', [unknownCell(all, cell)]);
  return chosen.map((each) => ({ cell: each.name, config: databaseOfCell(each) }));
}

/**
 * Reads the operator's secret for the admin port of a running server.
 *
 * @throws ConfigError
 */
export function readOperatorSecret(env: Environment = process.env): string | undefined {
  const { faults, value } = readerOf(settings, 'policy', { env });
  const secret = value('operatorSecret');
  throwIfAny(faults, 'invalid setting:');
  return secret;
}

/** The settings of chains that have nodes. */
export interface NodesConfig {
  readonly rpc: readonly chains.RpcEndpoints[];
}

/**
 * Reads the nodes in `CUSTOS_RPC` and `--rpc`.
 *
 * @throws ConfigError
 */
export function readNodesConfig(flags: { rpc?: string[] }, env: Environment = process.env): NodesConfig {
  const { faults, value } = readerOf(settings, 'restored', { env, flags: { rpc: flags.rpc } });
  const rpc = value('rpc');
  throwIfAny(faults, 'no nodes can be used:');
  return { rpc };
}

function databaseUrlOf<C extends Command>({ faults, name, value }: Reader<Settings, C>): string {
  return check.databaseUrl(faults, name('databaseUrl'), value('databaseUrl'));
}

function throwIfAny(faults: readonly string[], summary: string): void {
  // A setting that several cells use is read more than once.
  if (faults.length > 0) throw new ConfigError(summary, [...new Set(faults)]);
}
