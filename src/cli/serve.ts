import { Command, Option } from 'commander';
import { readServeConfig } from '../config.ts';
import { collect } from './listen-options.ts';

const settings = `
Settings (environment):
  DATABASE_URL             PostgreSQL, e.g. postgresql://user:password@host:5432/custos     needed
  CUSTOS_MASTER_KEY        32 bytes in hex or base64 that seal every wallet key             needed,
  CUSTOS_MASTER_KEY_FILE   or the file that holds them,                                     one of the three
  CUSTOS_KMS_URL           or a transit engine (Vault, OpenBao) that wraps the wallet keys,
  CUSTOS_KMS_KEY           with the name of its key
  CUSTOS_KMS_TOKEN         and the token that may use it
  CUSTOS_PREVIOUS_MASTER_KEYS  keys used before, comma-separated, until \`custos keys rotate\` has run
  CUSTOS_TLS_CERT          PEM file of the certificate and its chain                        needed,
  CUSTOS_TLS_KEY           PEM file of its private key                                      or the next
  CUSTOS_TRUST_PROXY       addresses or subnets of the proxy that ends TLS and sends
                           X-Forwarded-Proto and X-Forwarded-For
  CUSTOS_PUBLIC_URLS       base URLs that clients sign, comma-separated                     needed
  CUSTOS_HOST              address to listen on                                             0.0.0.0
  CUSTOS_PORT              port to listen on                                                8443
  CUSTOS_ADMIN_HOST        address of /metrics, /healthz, /readyz                           127.0.0.1
  CUSTOS_ADMIN_PORT        its port, or off                                                 9464
  CUSTOS_DATABASE_POOL     connections to the database                                      10
  CUSTOS_RATE_LIMIT        requests per second and burst for each app; 0 is no limit        100/200
  CUSTOS_USERS_PER_MINUTE  users that each app may make a minute; 0 is no limit of its own  240
  CUSTOS_MAX_CONNECTIONS   connections that are kept open at once                           10000
  CUSTOS_CONNECTIONS_PER_ADDRESS  of one address; 0 is no limit, as behind a proxy          1000
  CUSTOS_DRAIN_SECONDS     how long /readyz answers 503 before a stop closes the port       5
  CUSTOS_RESPONSE_CHECK    check answers against the document: off, sampled, always         sampled
  CUSTOS_RPC               nodes of EVM and Solana chains, separated by spaces:
                           eip155:1=https://a.example,https://b.example                     no chain
  CUSTOS_PREFIX            the clients' own word for service                                service
  CUSTOS_LOG_LEVEL         debug, info, warn, error, silent                                 info

Examples:
  $ custos migrate && custos serve
  $ custos apps create --name 'Acme'`;

/** `custos serve`: the production server. Refuses to start while anything it needs is missing. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the production server on PostgreSQL, configured by the environment')
    .addOption(new Option('--seed <text>').hideHelp())
    .option('--rpc <caip2=url[,url]>', 'as CUSTOS_RPC, for one chain; repeatable', collect)
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
