import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { Command } from 'commander';
import { environmentFor } from '../../config/client.ts';
import { readSandboxConfig, type SandboxFlags } from '../../config/config.ts';
import { withoutPlaces } from '../../config/config-file.ts';
import { addSettingOptions, configFileOf, givenFlags } from '../setting-options.ts';
import { announce } from './announce.ts';

const examples = `
Starts a sandbox on a free port, runs the command with the variables that
\`custos env\` prints, and stops the sandbox. Signals go to the command, and its
exit code is that of this one: 127 if it is not found, 128 and the number of the
signal that ended it.

Examples:
  $ custos exec --seed ci --seed-data -- npm test
  $ custos exec -- sh -c 'curl \\
      --cacert "$CUSTOS_CA_FILE" "$CUSTOS_BASE_URL/openapi.json"'`;

/** Returns the command `custos exec`, which runs a command with a sandbox of its own. */
export function execCommand(): Command {
  const command = new Command('exec')
    .description('start a sandbox, run a command with it, and stop it')
    .argument('<command...>', 'the command and its arguments, after --');
  return addSettingOptions(command, 'exec')
    .addHelpText('after', examples)
    .action(async ([program = '', ...args]: string[], flags: SandboxFlags, command: Command) => {
      const given = givenFlags(flags, command);
      const file = configFileOf(given);
      const config = readSandboxConfig({ quiet: true, ...given }, 'exec', file && withoutPlaces(file));
      const [{ startSandbox }, { clientEnvironment }] = await Promise.all([
        import('../../compose/sandbox.ts'),
        import('../../tools/client/sandbox-address.ts'),
      ]);
      const sandbox = await startSandbox(config);
      const withdraw = announce(sandbox, config);
      try {
        const { baseUrl: url, caFile, appId, appSecret, rpcUrl } = sandbox;
        const place = { url, caFile, appId, appSecret, rpcUrl, prefix: config.prefix };
        const variables = clientEnvironment(place);
        process.exitCode = await runProgram(program, args, variables);
      } finally {
        withdraw();
        await sandbox.close();
      }
    });
}

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs a command without a shell and waits until it ends. Returns the exit code that a shell would return. */
async function runProgram(
  command: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', env: environmentFor(variables) });
  const stopForwarding = forwardSignals(child);
  try {
    return await new Promise((resolve) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        const isAbsent = error.code === 'ENOENT';
        console.error(
          `custos: \`${command}\` ${isAbsent ? 'is not found' : `cannot be run: ${error.message}`}`,
        );
        resolve(isAbsent ? 127 : 126);
      });
      child.once('close', (code, signal) => {
        resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
      });
    });
  } finally {
    stopForwarding();
  }
}

/**
 * Forwards signals to the command. Returns a function that stops forwarding.
 *
 * NOTE: SIGINT is not forwarded from a terminal, because Ctrl-C already reaches the command too.
 */
function forwardSignals(child: ChildProcess): () => void {
  const handlers = forwarded.map((signal) => {
    const handler = (): void => {
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    };
    process.on(signal, handler);
    return () => process.off(signal, handler);
  });
  return () => {
    for (const remove of handlers) remove();
  };
}
