import type { Command } from 'commander';
import type { SandboxAddress, SandboxClient } from '../client/sandbox-client.ts';
import { ConfigError } from '../config.ts';

/** The options of every command that speaks to a running sandbox. */
export interface SandboxClientFlags extends SandboxAddress {
  json?: boolean;
}

export function addSandboxClientOptions(command: Command): Command {
  return command
    .option('--url <url>', 'the running sandbox (default: https://127.0.0.1:4010)')
    .option('--ready-file <path>', 'the file that `custos sandbox --ready-file` wrote, in place of --url')
    .option('--ca-file <path>', 'certificate authority to trust (default: where sandboxes in memory keep it)')
    .option('--data <folder>', 'the folder of `custos sandbox --data`, which holds its certificate')
    .option('--json', 'print one JSON object a line');
}

/** Runs `work` with a client for the sandbox that the flags name. Throws ConfigError. */
export async function withSandbox<T>(
  flags: SandboxClientFlags,
  work: (client: SandboxClient) => Promise<T>,
): Promise<T> {
  if (flags.url !== undefined) readHttpUrl('--url', flags.url);
  const { openSandboxClient } = await import('../client/sandbox-client.ts');
  const client = openSandboxClient(flags);
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** Throws ConfigError. */
export function readHttpUrl(option: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw wrongOption(`${option} must be a URL such as \`http://127.0.0.1:3000/hook\``);
}

export function wrongOption(fault: string): ConfigError {
  return new ConfigError('this option cannot be used:', [fault]);
}

/** Gathers an option that may be repeated and may hold several values with commas between. */
export function collectNames(value: string, values: string[] = []): string[] {
  return [...values, ...value.split(',').filter((name) => name !== '')];
}

/** Gathers an option that may be repeated. */
export function collect(value: string, values: string[] = []): string[] {
  return [...values, value];
}
