import { Command, Option } from 'commander';
import { readServeConfig, type ServeConfig } from '../config/config.ts';
import { collect } from './sandbox-options.ts';

const settings = `
Settings (environment):
  DATABASE_URL (required)
      PostgreSQL, e.g. postgresql://user:password@host:5432/custos
  CUSTOS_MASTER_KEY (required, or one of the next two)
      32 bytes in hex or base64 that seal every wallet key
  CUSTOS_MASTER_KEY_FILE
      or a file that contains them,
  CUSTOS_KMS_URL
      or a transit engine (Vault, OpenBao) that wraps the wallet keys,
  CUSTOS_KMS_KEY
      with the name of its key
  CUSTOS_KMS_MOUNT (default: transit), CUSTOS_KMS_NAMESPACE (default: none)
      and the path of the engine and its namespace,
  CUSTOS_KMS_TOKEN, CUSTOS_KMS_TOKEN_FILE
      and a token for that key, or a file that contains it; a token that may
      renew itself is renewed
  CUSTOS_PREVIOUS_MASTER_KEYS, CUSTOS_PREVIOUS_MASTER_KEYS_FILE
      previous keys, comma-separated, or a file that contains them, until
      \`custos keys rotate\` has finished
  CUSTOS_USER_LOGINS_FILE
      JSON file by app id of the logins whose tokens the signer verifies
  CUSTOS_SIGNATURES_PER_REQUEST (default: any number)
      for how many transactions the signer signs one request of an owner
  CUSTOS_SIGNER_SOCKET
      or, instead of all these, the socket of \`custos signer\`,
  CUSTOS_SIGNER_UID (default: the user of this process)
      with the user id that it must belong to
  CUSTOS_TLS_CERT (required, or CUSTOS_TRUST_PROXY)
      PEM file of the certificate and its chain; read again every minute, and
      after SIGHUP
  CUSTOS_TLS_KEY
      PEM file of its private key
  CUSTOS_TRUST_PROXY
      addresses or subnets of the proxy that terminates TLS and sends
      X-Forwarded-Proto and X-Forwarded-For
  CUSTOS_PUBLIC_URLS (required)
      base URLs that clients sign, comma-separated
  CUSTOS_HOST (default: 0.0.0.0)
      address to listen on
  CUSTOS_PORT (default: 8443)
      port to listen on
  CUSTOS_ADMIN_HOST (default: 127.0.0.1)
      address of /metrics, /healthz, /readyz
  CUSTOS_ADMIN_PORT (default: 9464)
      its port, or off
  CUSTOS_WORKERS (default: 1)
      processes that share the port, as --workers
  CUSTOS_DATABASE_POOL (default: 10)
      connections to the database for the requests of each worker; its jobs
      have half as many again
  CUSTOS_AFTER_PROMOTION (default: hold)
      what a server does that starts on a promoted replica: hold changes until
      \`custos restored release\`, or trust that the replica lost nothing
  CUSTOS_CHECKPOINT_FILE
      a file that keeps the last signed checkpoint of the audit log where the
      administrator of the database cannot write; by it, a server notices at
      its start that the log was cut or replaced
  CUSTOS_DATABASE_REPLICA_URL
      a streaming replica that lists are read from while it is at most a
      second behind; as many connections again
  CUSTOS_RATE_LIMIT (default: 100/200)
      requests per second and burst for each app; 0 means no limit
  CUSTOS_USERS_PER_MINUTE (default: 240)
      users that each app may create per minute; 0 means no limit
  CUSTOS_MAX_CONNECTIONS (default: 10000)
      open connections
  CUSTOS_CONNECTIONS_PER_ADDRESS (default: 1000)
      open connections per client address; 0 means no limit, the default
      behind a proxy
  CUSTOS_MAX_REQUESTS (default: 2000)
      requests in progress; more are answered 503
  CUSTOS_CONCURRENT_READS, CUSTOS_CONCURRENT_WRITES, CUSTOS_CONCURRENT_SIGNING
      requests of each kind that use the database at once; others wait (twice
      the pool for reads; the others share the pool less two)
  CUSTOS_MAX_DELAY_MS (default: 20)
      while requests keep waiting for longer than this, more are answered 503;
      0 means no limit
  CUSTOS_DRAIN_SECONDS (default: 5)
      how long /readyz returns 503 before a stop closes the port
  CUSTOS_RESPONSE_CHECK (default: sampled)
      check responses against the document: off, sampled, always
  CUSTOS_RPC (default: no chain)
      nodes of EVM and Solana chains, separated by spaces:
      eip155:1=https://a.example,https://b.example; several nodes of a chain
      are compared
  CUSTOS_FEE_CEILINGS (default: 2000, 500, 16777216, 1 ether)
  CUSTOS_AUTOMATION_FEE_SHARE (default: 0.5)
      the most that nodes may ask for, per chain, separated by spaces:
      eip155:1=price_gwei:300,tip_gwei:50,gas:5000000,fee_gwei:90000000; the
      signer has them too, and a signer with a socket its own ones
  CUSTOS_CONFIRMATIONS (default: 12 on most chains)
      blocks until a deposit counts as final, per chain, separated by spaces:
      eip155:1=32 eip155:10=off
  CUSTOS_SWAP_ROUTERS (default: no swaps)
      Uniswap V2 routers for swaps, per chain, separated by spaces, and after a
      comma the wrapped native asset, which the signer needs for wrapping it:
      eip155:1=0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D; a signer with a
      socket has its own ones
  CUSTOS_REWARD_DISTRIBUTORS (default: no rewards)
      Merkl's distributors of rewards, per chain, separated by spaces:
      eip155:1=0x3Ef3D8bA38EBe18DB133cEc108f4D14CE00Dd9Ae; as for routers
  CUSTOS_MERKL_URL (default: https://api.merkl.xyz)
      the API that gives proofs for them
  CUSTOS_MERKL_API_KEY (default: none)
      a key that raises the API's rate limit
  CUSTOS_BRIDGE_PRODUCTION_URL (default: no fiat)
      fiat provider with Bridge's API: its base URL, with the version,
  CUSTOS_BRIDGE_PRODUCTION_KEY
      with an API key,
  CUSTOS_BRIDGE_PRODUCTION_KEY_FILE
      or a file that contains it,
  CUSTOS_BRIDGE_PRODUCTION_WEBHOOK_KEY (default: polling only)
      and the PEM file of the key that verifies its webhooks, which are
      accepted at /provider_hints/bridge/production
  CUSTOS_BRIDGE_SANDBOX_URL, CUSTOS_BRIDGE_SANDBOX_KEY,
  CUSTOS_BRIDGE_SANDBOX_KEY_FILE, CUSTOS_BRIDGE_SANDBOX_WEBHOOK_KEY
      the same for the provider's test system, which works with test networks
      only
  CUSTOS_PREFIX (default: service)
      the word that clients use for service
  CUSTOS_LOG_LEVEL (default: info)
      debug, info, warn, error, silent
  CUSTOS_LOG_REQUESTS (default: 1)
      share of the requests without an error that are logged, from 0 to 1
  CUSTOS_OTLP_URL (default: nothing is sent)
      base URL of an OpenTelemetry collector (OTLP over HTTP, JSON)
  CUSTOS_OTLP_HEADERS (default: none)
      headers for it: name=value, comma-separated
  CUSTOS_OTLP_SERVICE (default: custos)
      the service.name of traces and metrics
  CUSTOS_TRACE_SHARE (default: 0.1)
      share of the requests that are traced, from 0 to 1; a request that
      continues a trace follows its traceparent

Examples:
  $ custos migrate && custos serve
  $ custos apps create --name 'Acme'`;

/** `custos serve`: runs the production server. Refuses to start when a required setting is missing. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the production server on PostgreSQL, configured by the environment')
    .addOption(new Option('--seed <text>').hideHelp())
    .option('--workers <count>', 'processes that share the port; SIGHUP replaces them one by one')
    .addOption(new Option('--worker').hideHelp())
    .option('--rpc <caip2=url[,url]>', 'like CUSTOS_RPC, for one chain; repeatable', collect)
    .addHelpText('after', settings)
    .action(async (flags: ServeFlags) => {
      // A signal to reload that comes during the start must not end it.
      process.on('SIGHUP', () => undefined);
      if (flags.worker !== true) {
        await serve(flags);
        return;
      }
      try {
        await serveAsWorker(flags);
      } finally {
        // The channel to the parent process would keep a worker that could not start.
        process.disconnect?.();
      }
    });
}

interface ServeFlags {
  readonly seed?: string;
  readonly rpc?: string[];
  readonly workers?: string;
  readonly worker?: boolean;
}

async function serve(flags: ServeFlags): Promise<void> {
  const config = readServeConfig(flags);
  if (config.workers > 1) {
    await serveByWorkers(config);
    return;
  }
  const signer = await startSigner(config);
  const [{ startProduction }, { stopOnSignal }] = await Promise.all([
    import('../compose/serve.ts'),
    import('./serve-until-stopped.ts'),
  ]);
  const server = await startProduction(config, { signer: signer.opening });
  await stopOnSignal(server, server.reload);
}

async function serveAsWorker(flags: ServeFlags): Promise<void> {
  const config = readServeConfig(flags);
  const signer = await startSigner(config);
  const { runWorker } = await import('../compose/workers.ts');
  await runWorker(config, signer.opening);
}

/** Starts the signer of this process while the server is loaded. Each worker has its own. */
async function startSigner(config: ServeConfig) {
  const { openSigner } = await import('../compose/open-signer.ts');
  const opening = openSigner(config);
  opening.catch(() => undefined);
  return { opening };
}

async function serveByWorkers(config: ServeConfig): Promise<void> {
  const [{ startWorkers }, { stopOnSignal }] = await Promise.all([
    import('../compose/workers.ts'),
    import('./serve-until-stopped.ts'),
  ]);
  const workers = await startWorkers(config, [...process.argv.slice(2), '--worker']);
  await stopOnSignal(workers, workers.restart);
}
