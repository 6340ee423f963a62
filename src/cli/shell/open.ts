import { Argument, Command } from 'commander';
import { hasDesktop } from '../../config/client.ts';
import { addSandboxAddressOptions, type SandboxClientFlags, withSandbox } from '../sandbox-options.ts';

/** The pages of the inspector, by the first segment of their addresses. */
export const inspectorPages: readonly string[] = [
  'home',
  'requests',
  'events',
  'webhooks',
  'wallets',
  'transactions',
  'actions',
  'money',
  'users',
  'policies',
  'sets',
  'aggregations',
  'intents',
  'quorums',
  'apps',
  'clock',
  'faults',
  'snapshots',
  'scenarios',
  'chains',
  'api',
  'coverage',
];

const pages: Readonly<Record<string, string>> = {
  start: '/',
  docs: '/docs',
  ...Object.fromEntries(inspectorPages.map((page) => [page, `/#/${page}`])),
};

const examples = `
Examples:
  $ custos open
  $ custos open docs --print
  $ custos open clock`;

/** Returns the command `custos open`, which opens the pages of the running sandbox in a browser. */
export function openCommand(): Command {
  return addSandboxAddressOptions(
    new Command('open')
      .description('open the running sandbox in a browser, and print the URL')
      .addArgument(new Argument('[page]', 'which page').choices(Object.keys(pages)).default('start'))
      .option('--print', 'only print the URL'),
  )
    .addHelpText('after', examples)
    .action((page: string, flags: SandboxClientFlags & { print?: boolean }) =>
      withSandbox(flags, async (client) => {
        await client.call('GET', '/clock');
        const url = new URL(pages[page]!, client.place().url).href;
        console.log(url);
        if (flags.print !== true && hasDesktop(process.platform)) await openInBrowser(url);
      }),
    );
}

const inspectExamples = `
Examples:
  $ custos inspect custos-failures/a-payout-3f9c01d2.custos
  $ custos snapshot save bug --file bug.custos --requests
        such a file of a running sandbox, for a bug report
  $ custos inspect bug.custos --print --port 4020`;

/** Returns the command `custos inspect`, which shows what a failed test has kept. */
export function inspectCommand(): Command {
  return new Command('inspect')
    .description('show the requests, events and state that a failed test has kept')
    .argument('<file>', 'file of `keepOnFailure`, `sandbox.keep` or `custos snapshot save --requests`')
    .option('--port <port>', 'port of the inspector; 0 selects a free one', '0')
    .option('--print', 'print the URL, and open no browser')
    .addHelpText('after', inspectExamples)
    .action(async (file: string, { port, print = false }: { port: string; print?: boolean }) => {
      const [{ keptSnapshot }, { readSandboxConfig }] = await Promise.all([
        import('../../compose/snapshots.ts'),
        import('../../config/config.ts'),
      ]);
      const snapshot = await keptSnapshot(file);
      const { prefix } = snapshot;
      const flags = { port, quiet: true, config: 'off', ...(prefix === undefined ? {} : { prefix }) };
      const config = readSandboxConfig(flags, 'sandbox');
      const [{ startSandbox }, { serveUntilStopped }, { announce }] = await Promise.all([
        import('../../compose/sandbox.ts'),
        import('../serve-until-stopped.ts'),
        import('./announce.ts'),
      ]);
      const sandbox = await startSandbox({ ...config, snapshot });
      const withdraw = announce(sandbox, config);
      const url = `${sandbox.baseUrl}/#/requests`;
      console.log(
        `${url}\nThe clock stands still at ${new Date(snapshot.nowMs).toISOString()}. Ctrl-C stops.`,
      );
      try {
        if (!print && hasDesktop(process.platform)) await openInBrowser(url);
        await serveUntilStopped(sandbox, config);
      } finally {
        withdraw();
      }
    });
}

/** Opens a URL without a shell, because a shell could interpret characters in it. */
async function openInBrowser(url: string): Promise<void> {
  // Imported on demand, because every command loads this file.
  const { spawn } = await import('node:child_process');
  const [command, ...args] = openerOf(process.platform);
  const opener = spawn(command, [...args, url], { stdio: 'ignore', detached: true });
  const failure = await new Promise<Error | undefined>((resolve) => {
    opener.once('error', resolve);
    opener.once('spawn', () => resolve(undefined));
  });
  if (failure === undefined) opener.unref();
  else console.error(`custos: no browser could be opened: ${failure.message}`);
}

function openerOf(platform: NodeJS.Platform): [string, ...string[]] {
  if (platform === 'darwin') return ['open'];
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler'];
  return ['xdg-open'];
}
