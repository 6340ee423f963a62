import type { Command } from 'commander';
import { ConfigError } from '../config/config.ts';
import type { SandboxAddress } from '../tools/client/sandbox-address.ts';
import type { SandboxClient } from '../tools/client/sandbox-client.ts';
import { stopSignal } from './serve-until-stopped.ts';
import { type List, type ListFlags, printList } from './shell/terminal.ts';

/** The options of every command that connects to a running sandbox. */
export interface SandboxClientFlags extends SandboxAddress {
  json?: boolean;
}

export function addSandboxClientOptions(command: Command): Command {
  return addSandboxAddressOptions(command).option('--json', 'print one JSON object per line');
}

/**
 * Adds the options of a command that prints a list of a running sandbox. With `--watch`, the list is printed again
 * whenever it changes.
 */
export function addSandboxListOptions(command: Command): Command {
  return addSandboxClientOptions(command).option('--watch', 'print the list again whenever it changes');
}

/**
 * Prints a list from the sandbox that the flags select.
 *
 * @throws ConfigError
 */
export function printSandboxList<Row extends object>(
  flags: SandboxClientFlags & ListFlags,
  read: (client: SandboxClient) => Promise<readonly Row[]>,
  list: List<Row>,
): Promise<void> {
  return withSandbox(flags, (client) =>
    printList(() => read(client), list, {
      ...flags,
      signal: flags.watch === true ? stopSignal() : undefined,
    }),
  );
}

export function addSandboxAddressOptions(command: Command): Command {
  return command
    .option(
      '--url <url>',
      'URL of the running sandbox (default: the one started in this folder or above, the one on port 4010, or the only one)',
    )
    .option('--ready-file <path>', 'file written by `custos sandbox --ready-file`, instead of --url')
    .option('--ca-file <path>', 'certificate authority to trust (default: that of the sandbox)')
    .option('--data <folder>', 'folder of the sandbox, as in `custos sandbox --data`');
}

/**
 * Runs `work` with a client for the sandbox that the flags select. If several sandboxes run and only the default port
 * selects this one, prints its URL.
 *
 * @param mustBeCertain whether to refuse a sandbox that only the default port selects, because the work removes data.
 * @throws ConfigError
 */
export async function withSandbox<T>(
  flags: SandboxClientFlags,
  work: (client: SandboxClient) => Promise<T>,
  { mustBeCertain = false } = {},
): Promise<T> {
  const { url, readyFile, data } = flags;
  if (url !== undefined) readHttpUrl('--url', url);
  const { openSandboxClient } = await import('../tools/client/sandbox-client.ts');
  const client = openSandboxClient(flags);
  // With one of these options, the user has chosen the sandbox. The ready file may not exist yet, so it is not read
  // here.
  const place = (url ?? readyFile ?? data) === undefined ? client.place() : undefined;
  if (place?.isGuess === true) {
    const several = 'several sandboxes run, and the current folder does not select one';
    if (mustBeCertain)
      throw invalidOption(`--url: ${several}; expected the URL of one, as \`custos\` lists them`);
    console.error(`custos: ${several}; using ${place.url}, --url selects another`);
  }
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** @throws ConfigError unless the text is an HTTP or HTTPS URL. Its message names the option. */
export function readHttpUrl(option: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw invalidOption(`${option}: expected a URL such as \`http://127.0.0.1:3000/hook\`, got \`${text}\``);
}

export function invalidOption(fault: string): ConfigError {
  return new ConfigError('invalid option:', [fault]);
}

/** Collects the values of a repeatable, comma-separated option. */
export function collectNames(value: string, values: string[] = []): string[] {
  return [...values, ...value.split(',').filter((name) => name !== '')];
}

/** Collects the values of a repeatable option. */
export function collect(value: string, values: string[] = []): string[] {
  return [...values, value];
}
