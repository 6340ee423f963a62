import { Command, Option } from 'commander';
import { readServeConfig } from '../config.ts';
import { collect } from './sandbox-options.ts';

const settings = `
Settings (environment):
  DATABASE_URL             PostgreSQL, e.g. postgresql://user:password@host:5432/custos     required
  CUSTOS_MASTER_KEY        32 bytes in hex or base64 that seal every wallet key             required,
  CUSTOS_MASTER_KEY_FILE   or a file that contains them,                                    one of the three
  CUSTOS_KMS_URL           or a transit engine (Vault, OpenBao) that wraps the wallet keys,
  CUSTOS_KMS_KEY           with the name of its key
  CUSTOS_KMS_TOKEN         and a token for that key
  CUSTOS_PREVIOUS_MASTER_KEYS  previous keys, comma-separated, until \`custos keys rotate\` has finished
  CUSTOS_TLS_CERT          PEM file of the certificate and its chain                        required,
  CUSTOS_TLS_KEY           PEM file of its private key                                      or the next
  CUSTOS_TRUST_PROXY       addresses or subnets of the proxy that terminates TLS and sends
                           X-Forwarded-Proto and X-Forwarded-For
  CUSTOS_PUBLIC_URLS       base URLs that clients sign, comma-separated                     required
  CUSTOS_HOST              address to listen on                                             0.0.0.0
  CUSTOS_PORT              port to listen on                                                8443
  CUSTOS_ADMIN_HOST        address of /metrics, /healthz, /readyz                           127.0.0.1
  CUSTOS_ADMIN_PORT        its port, or off                                                 9464
  CUSTOS_DATABASE_POOL     connections to the database                                      10
  CUSTOS_RATE_LIMIT        requests per second and burst for each app; 0 means no limit     100/200
  CUSTOS_USERS_PER_MINUTE  users that each app may create per minute; 0 means no limit      240
  CUSTOS_MAX_CONNECTIONS   open connections                                                 10000
  CUSTOS_CONNECTIONS_PER_ADDRESS  open connections per client address; 0 means no limit,
                           the default behind a proxy                                       1000
  CUSTOS_MAX_REQUESTS      requests in progress; more are answered 503                      2000
  CUSTOS_CONCURRENT_READS, CUSTOS_CONCURRENT_WRITES, CUSTOS_CONCURRENT_SIGNING
                           requests of each kind that use the database at once; others wait
                           (twice the pool for reads, two below the pool for the others)
  CUSTOS_MAX_DELAY_MS      while requests keep waiting for longer than this, more are
                           answered 503; 0 means no limit                                   20
  CUSTOS_DRAIN_SECONDS     how long /readyz returns 503 before a stop closes the port       5
  CUSTOS_RESPONSE_CHECK    check responses against the document: off, sampled, always       sampled
  CUSTOS_RPC               nodes of EVM and Solana chains, separated by spaces:
                           eip155:1=https://a.example,https://b.example; several nodes of
                           a chain are compared                                             no chain
  CUSTOS_FEE_CEILINGS      the most that nodes may ask for, per chain, separated by spaces:
                           eip155:1=price_gwei:300,tip_gwei:50,gas:5000000,fee_gwei:90000000
                                                                        2000, 500, 16777216, 1 ether
  CUSTOS_CONFIRMATIONS     blocks until a deposit counts as final, per chain, separated by spaces:
                           eip155:1=32 eip155:10=off                                       12 on most chains
  CUSTOS_SWAP_ROUTERS      Uniswap V2 routers for swaps, per chain, separated by spaces:
                           eip155:1=0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D              no swaps
  CUSTOS_REWARD_DISTRIBUTORS  Merkl's distributors of rewards, per chain, separated by spaces:
                           eip155:1=0x3Ef3D8bA38EBe18DB133cEc108f4D14CE00Dd9Ae              no rewards
  CUSTOS_MERKL_URL         the API that gives proofs for them                               https://api.merkl.xyz
  CUSTOS_MERKL_API_KEY     a key that raises the API's rate limit                           none
  CUSTOS_BRIDGE_PRODUCTION_URL  fiat provider with Bridge's API: its base URL, with the version,  no fiat
  CUSTOS_BRIDGE_PRODUCTION_KEY  with an API key,
  CUSTOS_BRIDGE_PRODUCTION_KEY_FILE  or a file that contains it,
  CUSTOS_BRIDGE_PRODUCTION_WEBHOOK_KEY  and the PEM file of the key that verifies its webhooks,
                           which are accepted at /provider_hints/bridge/production            polling only
  CUSTOS_BRIDGE_SANDBOX_URL, CUSTOS_BRIDGE_SANDBOX_KEY, CUSTOS_BRIDGE_SANDBOX_KEY_FILE,
  CUSTOS_BRIDGE_SANDBOX_WEBHOOK_KEY  the same for the provider's test system, which works with
                           test networks only
  CUSTOS_PREFIX            the word that clients use for service                            service
  CUSTOS_LOG_LEVEL         debug, info, warn, error, silent                                 info

Examples:
  $ custos migrate && custos serve
  $ custos apps create --name 'Acme'`;

/** `custos serve`: runs the production server. Refuses to start when a required setting is missing. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the production server on PostgreSQL, configured by the environment')
    .addOption(new Option('--seed <text>').hideHelp())
    .option('--rpc <caip2=url[,url]>', 'like CUSTOS_RPC, for one chain; repeatable', collect)
    .addHelpText('after', settings)
    .action(async (flags: { seed?: string; rpc?: string[] }) => {
      const config = readServeConfig(flags);
      const [{ startProduction }, { stopOnSignal }] = await Promise.all([
        import('../compose/production.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      await stopOnSignal(await startProduction(config));
    });
}
