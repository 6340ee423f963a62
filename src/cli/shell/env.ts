import { Command, Option } from 'commander';
import { addSandboxAddressOptions, type SandboxClientFlags, withSandbox } from '../sandbox-options.ts';
import { quote } from './terminal.ts';

type Format = 'shell' | 'dotenv' | 'json' | 'github';

const examples = `
Prints CUSTOS_BASE_URL, CUSTOS_APP_ID, CUSTOS_APP_SECRET, CUSTOS_CA_FILE and
CUSTOS_HEADER_PREFIX, which other commands read, CUSTOS_RPC_URL, and
NODE_EXTRA_CA_CERTS.
github is the format of the files in $GITHUB_ENV.

Examples:
  $ eval "$(custos env)"
  $ custos env --format dotenv > .env
  $ custos env --format github >> "$GITHUB_ENV"`;

const printers: Readonly<Record<Format, (variables: Readonly<Record<string, string>>) => string>> = {
  shell: (variables) => lines(variables, (name, value) => `export ${name}=${quote(value)}`),
  dotenv: (variables) => lines(variables, (name, value) => `${name}=${JSON.stringify(value)}`),
  json: (variables) => JSON.stringify(variables, undefined, 2),
  github: (variables) => lines(variables, (name, value) => `${name}=${value}`),
};

/** Returns the command `custos env`, which prints the variables with which programs reach the running sandbox. */
export function envCommand(): Command {
  return addSandboxAddressOptions(
    new Command('env')
      .description('print the environment variables that point programs to a sandbox')
      .addOption(
        new Option('--format <format>', 'format of the output')
          .choices(['shell', 'dotenv', 'json', 'github'])
          .default('shell'),
      ),
  )
    .addHelpText('after', examples)
    .action((flags: SandboxClientFlags & { format: Format }) =>
      withSandbox(flags, async (client) => {
        const { clientEnvironment } = await import('../../tools/client/sandbox-address.ts');
        // Throws if no sandbox runs at the URL.
        await client.call('GET', '/clock');
        console.log(printers[flags.format](clientEnvironment(client.place())));
      }),
    );
}

function lines(
  variables: Readonly<Record<string, string>>,
  line: (name: string, value: string) => string,
): string {
  return Object.entries(variables)
    .map(([name, value]) => line(name, value))
    .join('\n');
}
