import { relative } from 'node:path';
import { Command, CommanderError } from 'commander';
import { asStarted } from '../config/client.ts';
import { ConfigError, NoDatabaseError } from '../config/config.ts';
import { packageVersion } from '../config/package-root.ts';
import { StartError, UnmeasurableError } from '../config/start-error.ts';
import { appsCommand } from './apps.ts';
import { auditCommand } from './audit.ts';
import { backupCommand, restoreCommand } from './backups/backup.ts';
import { restoredCommand } from './backups/restored.ts';
import { callCommand } from './calls/call.ts';
import { mcpCommand } from './calls/mcp.ts';
import { rpcCommand } from './calls/rpc.ts';
import { tokenCommand } from './calls/token.ts';
import { cellsCommand } from './cells.ts';
import { coverageCommand } from './contract/coverage.ts';
import { describeCommand, operationHelp } from './contract/describe.ts';
import { verifyCommand } from './contract/verify.ts';
import { clockCommand } from './control/clock.ts';
import { faultsCommand } from './control/faults.ts';
import { scenarioCommand } from './control/scenario.ts';
import { snapshotCommand } from './control/snapshot.ts';
import { faucetCommand, mineCommand, poolsCommand, resetCommand } from './control/world.ts';
import { eventsCommand } from './events/events.ts';
import { listenCommand } from './events/listen.ts';
import { triggerCommand } from './events/trigger.ts';
import { healthcheckCommand } from './healthcheck.ts';
import { initCommand } from './init.ts';
import { keysCommand } from './keys.ts';
import { logsCommand } from './logs.ts';
import { migrateCommand } from './migrate.ts';
import { mockCommand } from './mock.ts';
import { policyCommand } from './policy.ts';
import { sandboxCommand } from './sandbox.ts';
import { serveCommand } from './serve.ts';
import { completeCommand, completionCommand } from './shell/completion.ts';
import { doctorCommand } from './shell/doctor.ts';
import { envCommand } from './shell/env.ts';
import { execCommand } from './shell/exec.ts';
import { inspectCommand, openCommand } from './shell/open.ts';
import { faultText } from './shell/terminal.ts';
import { sigCommand } from './sig-explain.ts';
import { signerCommand } from './signer.ts';
import { usersCommand } from './users.ts';
import { walletsCommand } from './wallets.ts';
import { whyCommand } from './why.ts';

/**
 * 0: the command succeeded. 1: it failed, or found problems. 2: invalid usage, nothing was run. 3: a command that
 * checks something found nothing to check.
 */
export type ExitCode = 0 | 1 | 2 | 3;

/**
 * Runs the command in `args` and returns the exit code. For a server, returns once the server has stopped.
 *
 * NOTE: commands import their code only when they run, so that `--help` stays fast.
 */
export async function runCommandLine(args: readonly string[]): Promise<ExitCode> {
  const program = makeProgram();
  try {
    if (args.length === 0) {
      const { overview } = await import('./shell/overview.ts');
      console.log(await overview());
      return 0;
    }
    const help = await operationHelp(args);
    if (help !== undefined) {
      console.log(help);
      return 0;
    }
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    return explain(error);
  }
}

/** Returns the command `custos` with all its subcommands. */
export function makeProgram(): Command {
  const program = new Command('custos')
    .description('Wallet infrastructure behind one HTTP contract: a sandbox, a mock and a production server.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .showHelpAfterError('(see --help)')
    .configureHelp({ helpWidth: 80, minWidthToWrap: 20, subcommandTerm: (command) => command.name() })
    .configureOutput({
      writeOut: (text) => process.stdout.write(asStarted(text)),
      outputError: (text, write) => write(text.replace(/^error: /, 'custos: ')),
    })
    .addHelpText('after', helpTail);
  const groups: Readonly<Record<string, readonly Command[]>> = {
    'Run:': [sandboxCommand(), execCommand(), mockCommand(), initCommand(), envCommand(), openCommand()],
    'Call:': [callCommand(), describeCommand(), tokenCommand(), rpcCommand(), mcpCommand()],
    'See what happened:': [
      ...[logsCommand(), whyCommand(), inspectCommand(), eventsCommand(), listenCommand(), triggerCommand()],
      ...[poolsCommand(), sigCommand()],
    ],
    'Change the world:': [
      ...[clockCommand(), faucetCommand(), mineCommand(), faultsCommand(), scenarioCommand()],
      ...[snapshotCommand(), resetCommand()],
    ],
    'Check the contract:': [coverageCommand(), verifyCommand(), policyCommand()],
    'Production:': [
      ...[serveCommand(), signerCommand(), migrateCommand(), healthcheckCommand(), appsCommand()],
      ...[walletsCommand(), usersCommand(), keysCommand(), cellsCommand(), auditCommand()],
      ...[backupCommand(), restoreCommand(), restoredCommand()],
    ],
    'This machine:': [doctorCommand(), completionCommand()],
  };
  for (const [heading, commands] of Object.entries(groups)) {
    for (const command of commands) program.addCommand(command.helpGroup(heading));
  }
  program.addCommand(completeCommand(makeProgram), { hidden: true });
  configureCommands(program);
  return program;
}

const helpTail = `
Examples:
  $ custos                          the running sandboxes, and what to do next
  $ custos sandbox                  a complete server on https://127.0.0.1:4010
  $ custos sandbox --data ./custos  the same, with its data in a folder
  $ custos call createWallet chain_type=ethereum
                                    one request to it
  $ custos logs                     its requests, and why they were refused
  $ custos listen --forward-to http://127.0.0.1:3000/hook
                                    forwards its signed events as they occur
  $ custos exec -- npm test         runs a command beside a sandbox of its own
  $ custos mock                     responds with the examples of the document
  $ custos serve                    the production server

Exit codes: 0 success, 1 failure, 2 invalid usage, 3 nothing could be measured.`;

/**
 * Applies the program's settings to all subcommands: they throw instead of exiting, and have the program's help
 * option.
 */
function configureCommands(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) {
    child.copyInheritedSettings(command).helpOption('-h, --help', 'print this help');
    configureCommands(child);
  }
}

// The advice that is printed for system errors, by code.
const advice: Readonly<
  Record<string, (error: NodeJS.ErrnoException & { address?: string; port?: number }) => string>
> = {
  EADDRINUSE: (error) =>
    `port ${error.port} on ${error.address} is in use; stop the other process, or choose another port with --port (0 selects a free one)`,
  EADDRNOTAVAIL: (error) => `${error.address} is not an address of this machine; choose another with --host`,
  EACCES: (error) =>
    error.port === undefined
      ? `no permission for \`${error.path}\``
      : `no permission to listen on port ${error.port}; choose one above 1023 with --port`,
  ENOENT: (error) => `\`${error.path}\` does not exist`,
  ENOTDIR: (error) => `a part of \`${error.path}\` is not a folder`,
  EISDIR: (error) => `expected a file, got the folder \`${error.path}\``,
  EROFS: (error) => `\`${error.path}\` is on a read-only file system; choose another folder`,
  ENOSPC: (error) => `the disk of \`${error.path}\` is full; make space`,
  EDQUOT: (error) => `the disk quota for \`${error.path}\` is used up; make space`,
  EMFILE: () => 'too many files are open; raise the limit with `ulimit -n`',
  SQLITE_NOTADB: (error) => `the database cannot be used: ${error.message}; restore it from a backup`,
  SQLITE_CORRUPT: (error) => `the database is damaged: ${error.message}; restore it from a backup`,
  SQLITE_FULL: () => 'the disk of the database is full; make space',
  SQLITE_READONLY: () => 'the database is read-only; make its folder and files writable',
  SQLITE_CANTOPEN: (error) =>
    `the database cannot be opened: ${error.message}; check its folder and permissions`,
  SQLITE_BUSY: () => 'another program keeps the database locked; stop it and try again',
  SQLITE_IOERR: (error) => `the database cannot be read or written: ${error.message}; check the disk`,
  ECONNREFUSED: () => 'the database refuses connections; is PostgreSQL running, and is its address right?',
  ENOTFOUND: (error) => `the host name in ${error.message.split(' ').at(-1)} is unknown`,
};

// Errors are recognized by name, because importing their classes would load the modules that define them.
const expectedErrors = new Set(['StorageVersionError', 'ApiError', 'DirectoryError']);

function isExpected(error: unknown): error is Error {
  return error instanceof StartError || (error instanceof Error && expectedErrors.has(error.name));
}

/** Prints the error, with advice if there is any, and returns the exit code. */
async function explain(error: unknown): Promise<ExitCode> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ConfigError) {
    console.error(faultText(error.message));
    if (error instanceof NoDatabaseError) await suggestDataFolder();
    return 2;
  }
  const { code } = error as NodeJS.ErrnoException;
  // SQLite's codes have suffixes, such as SQLITE_IOERR_WRITE.
  const known =
    code === undefined ? undefined : (advice[code] ?? advice[code.split('_').slice(0, 2).join('_')]);
  if (known !== undefined) console.error(faultText(known(error as NodeJS.ErrnoException)));
  else if (isExpected(error)) console.error(faultText(error.message));
  else await explainUnexpected(error);
  return error instanceof UnmeasurableError ? 3 : 1;
}

/** Prints an error of a database in one sentence, and any other one with its stack. */
async function explainUnexpected(error: unknown): Promise<void> {
  const { asStartError } = await import('../admin/administration.ts');
  const shown = asStartError(error, undefined);
  if (shown instanceof StartError) console.error(faultText(shown.message));
  else console.error('custos: unexpected error:', error);
}

/** Suggests the data folder of the running sandbox, if there is one. */
async function suggestDataFolder(): Promise<void> {
  const { findRunningSandbox } = await import('../tools/client/running-sandboxes.ts');
  const found = findRunningSandbox(undefined);
  if (found === undefined || found.isGuess || found.data === null) return;
  const folder = relative('', found.data) || '.';
  console.error(`custos: the running sandbox has its data in ${folder}, which commands with --data can use`);
}
