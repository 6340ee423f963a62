import { Command, InvalidArgumentError } from 'commander';
import { StartError } from '../config/start-error.ts';
import { addSandboxAddressOptions, type SandboxClientFlags, withSandbox } from './sandbox-options.ts';

const TIMEOUT_MS = 5_000;

const examples = `
Examples:
  $ custos healthcheck                      of the sandbox on this machine
  $ custos healthcheck --admin-port 9464
        of \`custos serve\`: ready to serve requests

Exit codes: 0 healthy, 1 not healthy, 2 invalid usage.`;

/**
 * Returns the command `custos healthcheck`, which checks a server. It is for container images that contain no other
 * tool for this check, such as curl.
 */
export function healthcheckCommand(): Command {
  return addSandboxAddressOptions(
    new Command('healthcheck')
      .description('exit with 0 if the server on this machine is ready')
      .option('--admin-port <port>', 'the admin port of a server, instead of a running sandbox', readPort),
  )
    .addHelpText('after', examples)
    .action(async ({ adminPort, ...flags }: SandboxClientFlags & { adminPort?: number }) => {
      if (adminPort !== undefined) return checkReady(adminPort);
      await withSandbox(flags, (client) => client.call('GET', '/clock', { timeoutMs: TIMEOUT_MS }));
    });
}

async function checkReady(port: number): Promise<void> {
  const url = `http://127.0.0.1:${port}/readyz`;
  let status: number;
  try {
    ({ status } = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) }));
  } catch (cause) {
    throw new StartError(`no server responds at ${url}`, { cause });
  }
  if (status !== 200) throw new StartError(`the server is not ready: ${url} returned ${status}`);
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError('expected a port from 1 to 65535');
  }
  return port;
}
