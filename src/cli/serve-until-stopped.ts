import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { logOutput } from '../adapters/log-output.ts';
import type { RunningSandbox } from '../compose/local.ts';
import type { SandboxConfig } from '../config.ts';
import { StartError } from '../start-error.ts';
import { banner } from './banner.ts';

/** Prints that the server is ready, writes the ready file, and returns once the server has stopped. */
export async function serveUntilStopped(server: RunningSandbox, config: SandboxConfig): Promise<void> {
  try {
    if (config.readyFile !== undefined) writeReadyFile(config.readyFile, readiness(server, config));
    if (config.json && !config.quiet) print(JSON.stringify({ msg: 'ready', ...readiness(server, config) }));
    else if (!config.quiet) print(banner(server, config));
  } catch (error) {
    await server.close();
    throw error;
  }
  await stopOnSignal(server);
  if (config.readyFile !== undefined) rmSync(config.readyFile, { force: true });
}

/** The same for the mock of any document. */
export async function serveDocument(
  server: { readonly baseUrl: string; readonly caFile: string; close(): Promise<void> },
  config: SandboxConfig,
  {
    document,
    operations,
  }: {
    readonly document: { readonly info: { readonly title: string; readonly version: string } };
    readonly operations: readonly unknown[];
  },
): Promise<void> {
  const ready = { base_url: server.baseUrl, ca_file: server.caFile, pid: process.pid };
  const { title, version } = document.info;
  try {
    if (config.readyFile !== undefined) writeReadyFile(config.readyFile, ready);
    if (config.json && !config.quiet) print(JSON.stringify({ msg: 'ready', ...ready }));
    else if (!config.quiet) {
      print(
        `A mock of ${title} ${version}, with ${operations.length} operations, is ready at ${server.baseUrl}\nCertificate authority: ${server.caFile}\nPress Ctrl-C to stop.`,
      );
    }
  } catch (error) {
    await server.close();
    throw error;
  }
  await stopOnSignal(server);
  if (config.readyFile !== undefined) rmSync(config.readyFile, { force: true });
}

/** Prints to standard output. A server goes on where that cannot be written. */
function print(text: string): void {
  logOutput(1).write(`${text}\n`);
}

/**
 * Waits for SIGINT, SIGTERM or SIGHUP, then stops the server, which completes running requests.
 * A second signal exits immediately.
 *
 * @param onHangup what SIGHUP does instead.
 */
export async function stopOnSignal(
  server: { close(): Promise<void> },
  onHangup?: () => unknown,
): Promise<void> {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
  if (onHangup === undefined) signals.push('SIGHUP');
  else process.on('SIGHUP', onHangup);
  await new Promise<void>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve());
  });
  for (const signal of signals) process.once(signal, () => process.exit(1));
  await server.close();
}

function readiness(server: RunningSandbox, { prefix }: SandboxConfig): object {
  return {
    base_url: server.baseUrl,
    app_id: server.appId,
    app_secret: server.appSecret,
    ca_file: server.caFile,
    ...(server.controlToken === undefined ? {} : { control_token: server.controlToken }),
    prefix,
    pid: process.pid,
    ...(server.adminUrl === undefined ? {} : { admin_url: server.adminUrl }),
  };
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist; create it',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
};

/**
 * Writes the file atomically. It contains the app secret, so only its owner can read it.
 *
 * @throws StartError
 */
function writeReadyFile(path: string, content: object): void {
  const temporaryFile = `${path}.${process.pid}`;
  try {
    writeFileSync(temporaryFile, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(temporaryFile, path);
  } catch (cause) {
    try {
      rmSync(temporaryFile, { force: true });
    } catch {
      // The reason below says what is wrong with the folder.
    }
    const reason = reasons[(cause as NodeJS.ErrnoException).code ?? ''] ?? (cause as Error).message;
    throw new StartError(`--ready-file: \`${path}\` cannot be written: ${reason}`, { cause });
  }
}
