import * as chains from './chains.ts';
import * as check from './checks.ts';
import { keySettings } from './key-settings.ts';
import type { Command, Flags, Setting } from './setting.ts';

// Every setting, defined once. Options, help texts, the advice of `custos doctor` and docs/reference/settings.md are
// generated from it.

const serve = ['serve'] as const;
const signing = ['serve', 'signer'] as const;
const sandbox = ['sandbox', 'exec'] as const;
const listening = ['sandbox', 'exec', 'mock'] as const;
const printing = ['sandbox', 'mock'] as const;
const nodes = ['serve', 'apps', 'restored'] as const;
const databases = [
  'serve',
  'apps',
  'audit',
  'keys',
  'migrate',
  'policy',
  'restored',
  'users',
  'wallets',
] as const;

const upToMillion = check.whole(0, 1_000_000);
const aboveZero = check.whole(1, 1_000_000);

const network = {
  host: {
    ...{ variable: 'CUSTOS_HOST', of: serve, flag: '--host <address>', on: listening },
    default: { serve: '0.0.0.0', sandbox: '127.0.0.1', exec: '127.0.0.1', mock: '127.0.0.1' },
    help: 'address to listen on',
  },
  port: {
    ...{ variable: 'CUSTOS_PORT', of: serve, flag: '--port <number>', on: listening, read: check.port },
    default: { serve: '8443', sandbox: '4010', exec: '0', mock: '4010' },
    help: 'port to listen on; 0 selects a free one',
  },
  publicUrl: {
    ...{ variable: 'CUSTOS_PUBLIC_URLS', of: serve, flag: '--public-url <url>', on: listening },
    ...{ list: 'items', required: 'required', read: check.publicUrls },
    help: 'base URLs under which clients sign their requests',
  },
  prefix: {
    ...{ variable: 'CUSTOS_PREFIX', of: serve, flag: '--prefix <word>', on: listening, read: check.prefix },
    ...{ default: 'service', help: 'the word that clients use for `service` in header names and ids' },
  },
  tlsCert: {
    ...{ variable: 'CUSTOS_TLS_CERT', of: serve, required: 'required, or CUSTOS_TRUST_PROXY' },
    help: 'PEM file of the certificate and its chain; read again every minute, and after SIGHUP',
  },
  tlsKey: {
    ...{ variable: 'CUSTOS_TLS_KEY', of: serve, required: 'required, or CUSTOS_TRUST_PROXY' },
    help: 'PEM file of the private key of the certificate',
  },
  trustProxy: {
    ...{ variable: 'CUSTOS_TRUST_PROXY', of: serve, default: '', absent: 'no proxy', read: check.proxies },
    help: 'addresses or subnets of the proxy that terminates TLS and sends X-Forwarded-Proto and X-Forwarded-For; comma-separated',
  },
  plainHttp: {
    ...{ flag: '--plain-http', on: listening, help: 'also accept plain HTTP from the local machine' },
  },
  adminHost: {
    ...{ variable: 'CUSTOS_ADMIN_HOST', of: serve, default: '127.0.0.1' },
    help: 'address of the admin port',
  },
  adminPort: {
    ...{ variable: 'CUSTOS_ADMIN_PORT', of: serve, flag: '--admin-port <number>', on: listening },
    ...{ default: { serve: '9464' }, absent: { sandbox: 'none', exec: 'none', mock: 'none' } },
    help: 'port of /metrics, /healthz and /readyz; off for none',
    read: (faults: check.Faults, name: string, text: string): number | undefined =>
      text === 'off' ? undefined : check.port(faults, name, text),
  },
  rpcPort: {
    ...{ flag: '--rpc-port <number>', on: sandbox, read: check.port },
    absent: { sandbox: 'none', exec: 'none' },
    help: 'port of 127.0.0.1 for the JSON-RPC of simulated EVM and Solana chains over plain HTTP and WebSocket: `/` is Base, `/{chain}` any other; 0 selects a free one',
  },
  workers: {
    ...{ variable: 'CUSTOS_WORKERS', of: serve, flag: '--workers <count>', on: serve, default: '1' },
    ...{ help: 'processes that share the port; SIGHUP replaces them one by one', read: check.whole(1, 64) },
  },
  drainSeconds: {
    ...{ variable: 'CUSTOS_DRAIN_SECONDS', of: serve, default: '5', unit: 's', read: check.whole(0, 300) },
    help: 'how long /readyz returns 503 before a stop closes the port',
  },
  responseCheck: {
    ...{ variable: 'CUSTOS_RESPONSE_CHECK', of: serve, default: 'sampled' },
    help: 'compare responses with the document: off, sampled or always',
    read: check.oneOf('off', 'sampled', 'always'),
  },
} as const satisfies Record<string, Setting>;

const database = {
  databaseUrl: {
    ...{ variable: 'DATABASE_URL', of: databases, required: 'required, or CUSTOS_CELLS_FILE', secret: true },
    help: 'the PostgreSQL database, e.g. postgresql://user:password@host:5432/custos',
  },
  cellsFile: {
    ...{ variable: 'CUSTOS_CELLS_FILE', of: databases, absent: 'one database', read: check.absolutePath },
    help: 'a JSON file that names several databases and the directory of the apps in them; see docs/cells.md',
  },
  databasePool: {
    ...{ variable: 'CUSTOS_DATABASE_POOL', of: serve, default: '10', read: check.whole(1, 1000) },
    help: 'database connections for the requests of each worker; its jobs have half as many again',
  },
  databaseReplicaUrl: {
    ...{ variable: 'CUSTOS_DATABASE_REPLICA_URL', of: serve, absent: 'none', secret: true },
    help: 'a streaming replica that lists are read from while it is at most a second behind; it takes as many connections as the pool',
    read: check.databaseUrl,
  },
  afterPromotion: {
    ...{ variable: 'CUSTOS_AFTER_PROMOTION', of: serve, default: 'hold', read: check.oneOf('hold', 'trust') },
    help: 'behavior of a server that starts on a promoted replica: hold changes until `custos restored release`, or trust that the replica lost nothing',
  },
  checkpointFile: {
    ...{ variable: 'CUSTOS_CHECKPOINT_FILE', of: serve, absent: 'none', read: check.optionalPath },
    help: 'a file that keeps the last signed checkpoint of the audit log where the administrator of the database cannot write; a server that starts uses it to notice that the log was cut or replaced',
  },
  data: {
    ...{ flag: '--data <folder>', on: listening, read: check.absolutePath },
    absent: { sandbox: 'in memory', exec: 'in memory', mock: 'a folder of this user' },
    help: 'keep all data of a sandbox, or the certificate of a mock, in this folder',
  },
} as const satisfies Record<string, Setting>;

const chainSettings = {
  rpc: {
    ...{ variable: 'CUSTOS_RPC', of: nodes, flag: '--rpc <caip2=url[,url]>', on: [...nodes, ...sandbox] },
    ...{ list: 'words', secret: true, read: chains.rpcEndpoints },
    absent: { serve: 'no chain', sandbox: 'all chains are simulated', exec: 'all chains are simulated' },
    help: 'nodes of EVM and Solana chains, e.g. eip155:1=https://a.example,https://b.example; several nodes of a chain are compared',
  },
  fork: {
    ...{ flag: '--fork <caip2=url[@block]>', on: sandbox, list: 'words', secret: true, read: chains.forks },
    absent: { sandbox: 'all chains begin empty', exec: 'all chains begin empty' },
    help: 'simulated EVM chains that continue a real one, e.g. eip155:1=https://a.example@23000000; missing state is read from the node and kept on disk, nothing is sent there',
  },
  feeCeilings: {
    ...{ variable: 'CUSTOS_FEE_CEILINGS', of: signing, list: 'words' },
    absent: 'price 2000 gwei, tip 500 gwei, gas 16777216, fee 1 ether on most chains',
    help: 'the highest fees that are filled in, per chain, e.g. eip155:1=price_gwei:300,tip_gwei:50,gas:5000000,fee_gwei:90000000; give a signer with a socket the same value',
  },
  confirmations: {
    ...{ variable: 'CUSTOS_CONFIRMATIONS', of: serve, list: 'words', absent: '12 on most chains' },
    help: 'blocks until a deposit counts as final, per chain, e.g. eip155:1=32 eip155:10=off',
  },
  automationFeeShare: {
    ...{ variable: 'CUSTOS_AUTOMATION_FEE_SHARE', of: serve, default: '0.5', read: check.share },
    help: 'the largest share of the proceeds of an automation that its gas may cost, from 0 to 1',
  },
  swapRouter: {
    ...{ variable: 'CUSTOS_SWAP_ROUTERS', of: signing, flag: '--swap-router <caip2=address>', on: sandbox },
    ...{ list: 'words', absent: 'no swaps' },
    help: 'Uniswap V2 routers of chains with nodes, e.g. eip155:1=0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D; the wrapped native asset after a comma lets the signer wrap it; give a signer with a socket the same value',
  },
  rewardDistributor: {
    ...{ variable: 'CUSTOS_REWARD_DISTRIBUTORS', of: signing, flag: '--reward-distributor <caip2=address>' },
    ...{ on: sandbox, list: 'words', absent: 'no rewards' },
    help: "Merkl's distributors of rewards on chains with nodes, e.g. eip155:1=0x3Ef3D8bA38EBe18DB133cEc108f4D14CE00Dd9Ae; give a signer with a socket the same value",
  },
  merklUrl: {
    ...{ variable: 'CUSTOS_MERKL_URL', of: serve, flag: '--merkl-url <url>', on: sandbox },
    ...{ default: 'https://api.merkl.xyz', help: 'the API that returns the proofs of rewards' },
    read: check.encryptedUrl,
  },
  merklApiKey: {
    ...{ variable: 'CUSTOS_MERKL_API_KEY', of: serve, absent: 'none' },
    ...{ secret: true, read: check.secretText(1) },
    help: 'a key that raises the rate limit of the API of rewards',
  },
} as const satisfies Record<string, Setting>;

const limits = {
  rateLimit: {
    ...{ variable: 'CUSTOS_RATE_LIMIT', of: serve, flag: '--rate-limit <n[/burst]>', on: listening },
    ...{ default: { serve: '100/200', sandbox: '0', exec: '0', mock: '0' }, read: check.rateLimit },
    help: 'requests per second for each app, and the size of a burst; 0 means no limit',
  },
  usersPerMinute: {
    // The only limit whose value the specification gives.
    ...{ variable: 'CUSTOS_USERS_PER_MINUTE', of: serve, default: '240', read: upToMillion },
    help: 'users that each app may create per minute; 0 means no limit',
  },
  maxConnections: {
    ...{ variable: 'CUSTOS_MAX_CONNECTIONS', of: serve, default: '10000', read: aboveZero },
    help: 'open connections',
  },
  connectionsPerAddress: {
    ...{ variable: 'CUSTOS_CONNECTIONS_PER_ADDRESS', of: serve, read: upToMillion },
    ...{ absent: '1000, or 0 behind a proxy', help: 'open connections per client address; 0 means no limit' },
  },
  maxRequests: {
    ...{ variable: 'CUSTOS_MAX_REQUESTS', of: serve, default: '2000', read: aboveZero },
    help: 'requests in progress; further requests get 503',
  },
  concurrentReads: {
    ...{ variable: 'CUSTOS_CONCURRENT_READS', of: serve, absent: 'twice the pool', read: aboveZero },
    help: 'reads that use the database at once; others wait',
  },
  concurrentWrites: {
    ...{ variable: 'CUSTOS_CONCURRENT_WRITES', of: serve, read: aboveZero },
    absent: 'half of the pool less two',
    help: 'writes that use the database at once; others wait',
  },
  concurrentSigning: {
    ...{ variable: 'CUSTOS_CONCURRENT_SIGNING', of: serve, read: aboveZero },
    absent: 'half of the pool less two',
    help: 'signing requests that use the database at once; others wait',
  },
  maxDelayMs: {
    ...{ variable: 'CUSTOS_MAX_DELAY_MS', of: serve, default: '20', unit: 'ms', read: upToMillion },
    help: 'while requests keep waiting for longer than this, further requests get 503; 0 admits everything',
  },
} as const satisfies Record<string, Setting>;

const telemetry = {
  logLevel: {
    ...{ variable: 'CUSTOS_LOG_LEVEL', of: serve, flag: '--log-level <level>', on: printing },
    ...{ default: 'info', help: 'debug, info, warn, error or silent' },
    read: check.oneOf('debug', 'info', 'warn', 'error', 'silent'),
  },
  logRequests: {
    ...{ variable: 'CUSTOS_LOG_REQUESTS', of: serve, default: '1', read: check.share },
    help: 'share of the requests without an error that are logged, from 0 to 1',
  },
  otlpUrl: {
    ...{ variable: 'CUSTOS_OTLP_URL', of: serve, absent: 'OTEL_EXPORTER_OTLP_ENDPOINT' },
    help: 'base URL of an OpenTelemetry collector (OTLP over HTTP, JSON)',
  },
  otlpHeaders: {
    ...{ variable: 'CUSTOS_OTLP_HEADERS', of: serve, absent: 'none', secret: true },
    help: 'headers for the collector: name=value, comma-separated',
  },
  otlpService: {
    ...{ variable: 'CUSTOS_OTLP_SERVICE', of: serve, absent: 'OTEL_SERVICE_NAME, or custos' },
    help: 'the service.name of traces and metrics',
  },
  traceShare: {
    ...{ variable: 'CUSTOS_TRACE_SHARE', of: serve, read: check.share },
    absent: 'OTEL_TRACES_SAMPLER_ARG, or 0.1',
    help: 'share of the requests that are traced, from 0 to 1; a request that continues a trace follows its traceparent',
  },
} as const satisfies Record<string, Setting>;

const sandboxSettings = {
  config: {
    ...{ flag: '--config <file|off>', on: sandbox },
    absent: 'custos.config.json, if the current folder has one',
    help: 'read settings, users, wallets, policies, balances, webhook endpoints and faults from this file',
  },
  appId: { flag: '--app-id <id>', on: sandbox, help: 'id of the app', absent: 'a fixed id' },
  appSecret: {
    ...{ flag: '--app-secret <secret>', on: sandbox, secret: true, help: 'secret of the app' },
    ...{ absent: 'the published one on loopback, else random', read: check.secretText(8) },
  },
  controlToken: {
    ...{ variable: 'CUSTOS_CONTROL_TOKEN', of: sandbox, flag: '--control-token <token>', on: sandbox },
    ...{ secret: true, absent: 'closed on loopback, else random', read: check.secretText(16) },
    help: 'opens the control plane and the inspector to other machines that send it',
  },
  jwtKey: {
    ...{ flag: '--jwt-key <file>', on: sandbox, read: check.publicKeyFile },
    help: "PEM of the key that signs your users' tokens, which are then accepted",
  },
  seed: {
    ...{ flag: '--seed <text>', on: sandbox },
    help: 'derive ids, keys and secrets from this text, so that they are the same in every run; never for real money',
  },
  clock: {
    ...{ flag: '--clock <now|frozen|time>', on: sandbox, read: check.clockStart },
    ...{ default: 'now' },
    help: 'start with the time of the machine, or frozen, at the given time; with --seed, `frozen` is 2026-01-01 and makes every run the same to the byte',
  },
  load: {
    ...{ flag: '--load <name|file>', on: sandbox },
    help: 'start with a snapshot: one in the data folder, or a file; a reset returns to it',
  },
  seedData: {
    ...{ flag: '--seed-data', on: sandbox },
    help: 'start with named users, ten funded wallets, key quorums, a policy and a vault',
  },
  funds: {
    ...{ flag: '--no-funds', on: sandbox },
    help: 'with --seed-data, create only four wallets, without funds',
  },
  fundNewWallets: {
    ...{ flag: '--fund-new-wallets', on: sandbox },
    help: 'give gas and stablecoins to each new wallet on simulated EVM chains, Solana and Tron',
  },
  confirmAfter: {
    ...{
      flag: '--confirm-after <ms>',
      on: sandbox,
      absent: 'with the next block',
      read: check.whole(0, 86_400_000),
    },
    help: 'confirm each transaction on simulated chains after this time, 0 immediately',
  },
  preparedKeys: {
    // CHOICE: enough for a burst of 500 new wallets. The prepared keys take 0.5 MB.
    ...{ flag: '--prepared-keys <count>', on: sandbox, default: '512', read: check.whole(0, 10_000) },
    help: 'how many keys of new wallets to prepare while idle, 0 for none; a seed gives the same keys in any case',
  },
  audit: {
    ...{ flag: '--audit <on|off>', on: sandbox, default: 'on', read: check.oneOf('on', 'off') },
    help: 'write the audit log, as in production; off records only what operators do',
  },
  record: {
    ...{ flag: '--record <on|off>', on: sandbox, default: 'on', read: check.oneOf('on', 'off') },
    help: 'keep the latest requests for `custos logs` and /_sandbox/requests',
  },
  hints: {
    ...{ flag: '--no-hints', on: sandbox, help: 'answer refusals as in production, without `data.hint`' },
  },
  readyFile: {
    ...{ flag: '--ready-file <path>', on: printing, read: check.absolutePath },
    help: 'write {base_url, app_id, app_secret, ca_file, control_token, rpc_url, prefix, pid} to this file once the server is ready',
  },
  quiet: { flag: '--quiet', on: printing, help: 'print only errors' },
  json: { flag: '--json', on: printing, help: 'print one JSON object per line' },
} as const satisfies Record<string, Setting>;

/** The variables that tell commands which sandbox to use. `custos env` prints them. */
export const clientSettings = {
  url: { variable: 'CUSTOS_BASE_URL', help: 'URL of the sandbox' },
  appId: { variable: 'CUSTOS_APP_ID', help: 'id of its app' },
  appSecret: { variable: 'CUSTOS_APP_SECRET', secret: true, help: 'secret of its app' },
  caFile: { variable: 'CUSTOS_CA_FILE', help: 'certificate authority to trust' },
  prefix: { variable: 'CUSTOS_HEADER_PREFIX', help: 'the word in header names', absent: 'service' },
  rpcUrl: {
    variable: 'CUSTOS_RPC_URL',
    help: 'the JSON-RPC of its simulated EVM and Solana chains; the name of one follows after a slash',
  },
  controlToken: {
    ...{ variable: 'CUSTOS_CONTROL_TOKEN', secret: true },
    help: 'the token that opens its control plane to other machines',
  },
} as const satisfies Record<string, Setting>;

const operator = {
  operatorSecret: {
    ...{ variable: 'CUSTOS_OPERATOR_SECRET', of: ['policy'], secret: true },
    help: 'secret of the operator who uses the admin port of a running server',
    read: check.secretText(1),
  },
} as const satisfies Record<string, Setting>;

export const settings = {
  ...{ ...network, ...database, ...keySettings, ...chainSettings },
  ...{ ...limits, ...telemetry, ...sandboxSettings, ...operator },
};

export type Settings = typeof settings;
export type SettingFlags = Flags<Settings>;

export function providerSettings(environment: 'production' | 'sandbox') {
  const start = `CUSTOS_BRIDGE_${environment.toUpperCase()}` as const;
  const which = environment === 'production' ? "Bridge's API" : 'its test system, for test networks only';
  return {
    url: {
      ...{ variable: `${start}_URL`, of: serve, absent: 'no fiat' },
      help: `base URL of a fiat provider with ${which}, with the version`,
    },
    key: { variable: `${start}_KEY`, of: serve, file: true, secret: true, help: 'the API key for it' },
    webhookKey: {
      ...{ variable: `${start}_WEBHOOK_KEY`, of: serve, absent: 'polling only' },
      help: `PEM file of the key that verifies its webhooks, which are accepted at /provider_hints/bridge/${environment}`,
    },
  } as const satisfies Record<string, Setting>;
}

/** All settings, as the help texts and the reference page list them. */
export const settingGroups: Readonly<Record<string, readonly Setting[]>> = {
  Database: Object.values(database),
  'Keys and signer': Object.values(keySettings),
  Network: Object.values(network),
  Chains: Object.values(chainSettings),
  'Fiat provider': (['production', 'sandbox'] as const).flatMap((environment): Setting[] =>
    Object.values(providerSettings(environment)),
  ),
  Limits: Object.values(limits),
  'Log, traces and metrics': Object.values(telemetry),
  Sandbox: Object.values(sandboxSettings),
  'Clients of a server': [...Object.values(clientSettings), ...Object.values(operator)],
};

export const allSettings: readonly Setting[] = Object.values(settingGroups).flat();

/** Returns the variables of a command, with those that name files. */
export function variablesOf(command: Command): string[] {
  return allSettings.filter(({ of = [] }) => of.includes(command)).flatMap(variableNames);
}

export function variableNames({ variable, file }: Setting): string[] {
  if (variable === undefined) return [];
  return file === true ? [variable, `${variable}_FILE`] : [variable];
}
