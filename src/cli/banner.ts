import type { FundedWallet, RunningSandbox } from '../compose/local-server.ts';
import { asStarted } from '../config/client.ts';
import type { SandboxConfig } from '../config/config.ts';
import { type Column, quote, screenOf, table } from './shell/terminal.ts';

/** Returns the start-up message: everything that a first request needs, and an example request. */
export async function banner(server: RunningSandbox, config: SandboxConfig): Promise<string> {
  const { appId, appSecret, caFile, adminUrl, isExposed, isMock, controlToken, rpcUrl } = server;
  const [baseUrl = server.baseUrl] = config.publicUrls;
  const lines = [
    ['Base URL', baseUrl],
    ...(baseUrl === server.baseUrl ? [] : [['', `${server.baseUrl} on this machine`]]),
    ['App id', appId],
    ['App secret', appSecret],
    ...(isExposed ? [['', noteOnSecret(config)]] : []),
    ['Data', isMock === true ? 'none: every response is an example' : dataText(config)],
    ['Trust', `${caFile} (certificate authority)`],
    // Browsers on other machines can use the inspector only if a token protects it, so without a token its local URL
    // is shown.
    ...(isMock === true ? [] : [['Inspector', `${controlToken === undefined ? server.baseUrl : baseUrl}/`]]),
    ...(controlToken === undefined
      ? []
      : [['Control', `${controlToken} (token; in a browser, the password)`]]),
    ['Docs', `${baseUrl}/docs`],
    ...(rpcUrl === undefined ? [] : [['JSON-RPC', `${rpcUrl}/base (any EVM chain, /solana)`]]),
    ...(adminUrl === undefined ? [] : [['Metrics', `${adminUrl}/metrics`]]),
    ...clockLines(server),
    ...(config.seed === undefined ? [] : [['Seed', `${config.seed}; do not use it for real money`]]),
  ];
  return [
    'Custos is ready.',
    '',
    ...lines.map(([label = '', value = '']) => `  ${label.padEnd(12)}${value}`),
    '',
    ...walletLines((await server.fundedWallets?.()) ?? []),
    'Create a wallet:',
    '',
    curl({ ...server, baseUrl }, config.prefix),
    '',
    'Press Ctrl-C to stop.',
  ].join('\n');
}

/**
 * Returns a line about the clock if it is frozen. A clock that differs from the system clock surprises clients,
 * because tokens look expired to them.
 */
function clockLines({ clock }: RunningSandbox): string[][] {
  if (clock?.isFrozen !== true) return [];
  return [
    [
      'Clock',
      asStarted(`frozen at ${new Date(clock.now()).toISOString()}; \`custos clock resume\` lets it run`),
    ],
    ['', 'access tokens look expired to clients that verify them by the clock of their machine'],
  ];
}

/** Returns the funded wallets, each with its address and its balances on each chain. */
function walletLines(wallets: readonly FundedWallet[]): string[] {
  if (wallets.length === 0) return [];
  const held = ({ balances }: FundedWallet): string =>
    [...Map.groupBy(Object.keys(balances), (chain) => balances[chain])]
      .map(([amounts, chains]) => `${amounts} on ${chains.join(' and ')}`)
      .join('; ');
  const columns: readonly Column<FundedWallet>[] = [
    { title: 'wallet', text: ({ name }) => name, color: () => 'bold' },
    { title: 'address', text: ({ address }) => address },
    { title: 'has', text: held, color: () => 'green' },
  ];
  const screen = screenOf();
  const rows = table(columns, wallets, { ...screen, isTerminal: false, width: screen.width - 2 });
  const lines = rows.split('\n').map((row) => `  ${row}`);
  return ['Wallets with funds on simulated chains:', '', ...lines, ''];
}

function dataText({ dataFolder }: SandboxConfig): string {
  return dataFolder ?? 'in memory, lost when the server stops; --data <folder> keeps it';
}

/** Returns a note for a sandbox that other machines can reach, because only its secret protects its wallets. */
function noteOnSecret({ host, appSecret }: SandboxConfig): string {
  const origin = appSecret === undefined ? 'random; set one with --app-secret' : 'set with --app-secret';
  return `${origin}. Other machines can reach ${host}: keep the secret to yourself`;
}

/** Returns a request that works when pasted into a POSIX shell. */
function curl({ baseUrl, appId, appSecret, caFile }: RunningSandbox, prefix: string): string {
  return [
    `curl --cacert ${quote(caFile)} -u ${quote(`${appId}:${appSecret}`)}`,
    `  -H ${quote(`${prefix}-app-id: ${appId}`)} -H 'content-type: application/json'`,
    `  ${quote(`${baseUrl}/v1/wallets`)} -d '{"chain_type":"ethereum"}'`,
  ].join(' \\\n');
}
