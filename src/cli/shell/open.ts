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
