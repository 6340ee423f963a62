import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { ConfigError } from '../config.ts';
import { packageRoot } from '../package-root.ts';
import { appsCommand } from './apps.ts';
import { eventsCommand } from './events.ts';
import { keysCommand } from './keys.ts';
import { listenCommand } from './listen.ts';
import { migrateCommand } from './migrate.ts';
import { mockCommand } from './mock.ts';
import { policyCommand } from './policy.ts';
import { sandboxCommand } from './sandbox.ts';
import { serveCommand } from './serve.ts';
import { sigCommand } from './sig-explain.ts';
import { triggerCommand } from './trigger.ts';

/** 0: done. 1: it was tried and failed. 2: it was called wrongly and nothing was tried. */
export type ExitCode = 0 | 1 | 2;

/**
 * Runs the command that `args` name and returns the exit code; a command that serves returns when it has stopped.
 *
 * NOTE: the commands load what they run only when they run it, so that help is quick.
 */
export async function runCommandLine(args: readonly string[]): Promise<ExitCode> {
  const program = makeProgram();
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    return explain(error);
  }
}

function makeProgram(): Command {
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  const program = new Command('custos')
    .description('Wallet infrastructure behind one HTTP contract: a sandbox, a mock and a production server.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .showHelpAfterError('(--help lists what is possible)')
    .addHelpText('after', helpTail);
  const commands = [
    sandboxCommand(),
    mockCommand(),
    listenCommand(),
    triggerCommand(),
    eventsCommand(),
    serveCommand(),
    migrateCommand(),
    appsCommand(),
    keysCommand(),
    policyCommand(),
    sigCommand(),
  ];
  for (const command of commands) program.addCommand(command);
  settle(program);
  return program;
}

const helpTail = `
Examples:
  $ custos sandbox                     a whole server on https://127.0.0.1:4010, in memory
  $ custos sandbox --data ./custos     the same, kept in a folder
  $ custos listen --forward-to http://127.0.0.1:3000/hook
                                       its events, signed, as they happen
  $ custos mock                        answers from the document's examples, without state
  $ custos serve                       the production server, configured by the environment

Exit codes: 0 done, 1 failed, 2 called wrongly.`;

/** Gives every command below the manners of the program: throwing instead of exiting, and the same help option. */
function settle(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) {
    child.copyInheritedSettings(command).helpOption('-h, --help', 'print this help');
    settle(child);
  }
}

// What the system's refusals mean to the person at the terminal.
const advice: Readonly<
  Record<string, (error: NodeJS.ErrnoException & { address?: string; port?: number }) => string>
> = {
  EADDRINUSE: (error) =>
    `port ${error.port} on ${error.address} is taken; stop what listens there, or choose another with --port (0 takes any free one)`,
  EADDRNOTAVAIL: (error) => `this machine has no address ${error.address}; choose another with --host`,
  EACCES: (error) =>
    error.port === undefined
      ? `no permission for \`${error.path}\``
      : `no permission to listen on port ${error.port}; choose one above 1023 with --port`,
  ENOTFOUND: (error) => `the host name in ${error.message.split(' ').at(-1)} is unknown`,
  ECONNREFUSED: () =>
    'the database refuses connections; is PostgreSQL running, and does DATABASE_URL point to it?',
};

// Recognised by name: importing their classes would load the rooms they live in.
const expectedErrors = new Set(['StartError', 'StorageVersionError', 'ApiError']);

function isExpected(error: unknown): error is Error {
  return error instanceof Error && expectedErrors.has(error.name);
}

/** Prints what went wrong, with advice where there is some, and chooses the exit code. */
function explain(error: unknown): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ConfigError) {
    console.error(`custos: ${error.message}`);
    return 2;
  }
  const { code } = error as NodeJS.ErrnoException;
  const known = code === undefined ? undefined : advice[code];
  if (known !== undefined) console.error(`custos: ${known(error as NodeJS.ErrnoException)}`);
  else if (isExpected(error)) console.error(`custos: ${error.message}`);
  else console.error('custos: failed unexpectedly;', error);
  return 1;
}
