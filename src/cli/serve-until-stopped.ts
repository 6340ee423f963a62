import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { logOutput } from '../adapters/log.ts';
import type { RunningSandbox } from '../compose/local-server.ts';
import type { SandboxConfig } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { banner } from './banner.ts';

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
 * Removes the ready file of a process that was killed, so that a script does not read it before the new server is
 * ready. The file of a running process stays until this process is ready, because this process may fail to start.
 */
export function removeStaleReadyFile(path: string): void {
  const pid = pidIn(path);
  if (pid !== undefined && (pid === process.pid || !isRunning(pid))) rmSync(path, { force: true });
}

/**
 * Writes the ready file atomically. It contains the app secret, so only its owner can read it. The file is removed
 * whenever this process exits by itself.
 *
 * Call it once signals are caught; otherwise a signal ends the process and leaves the file.
 *
 * @throws StartError
 */
export function writeReadyFile(path: string, content: object): void {
  const temporaryFile = `${path}.${process.pid}`;
  try {
    writeFileSync(temporaryFile, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(temporaryFile, path);
  } catch (cause) {
    try {
      rmSync(temporaryFile, { force: true });
    } catch {
      // The error below explains the problem with the folder.
    }
    const reason = reasons[(cause as NodeJS.ErrnoException).code ?? ''] ?? (cause as Error).message;
    throw new StartError(`--ready-file: \`${path}\` cannot be written: ${reason}`, { cause });
  }
  process.once('exit', () => removeOwnReadyFile(path));
}

/** Removes the ready file, unless another process has replaced it. */
function removeOwnReadyFile(path: string): void {
  if (pidIn(path) === process.pid) rmSync(path, { force: true });
}

/** Returns the id of the process that a ready file names. Returns undefined for any other file, or if there is none. */
function pidIn(path: string): number | undefined {
  try {
    const { pid, base_url: baseUrl } = JSON.parse(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 && typeof baseUrl === 'string' ? pid : undefined;
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM means that the process belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Prints that the server is ready, writes the ready file, and returns once the server has stopped. */
export async function serveUntilStopped(server: RunningSandbox, config: SandboxConfig): Promise<void> {
  const { readyFile, json, quiet } = config;
  const ready = readiness(server, config);
  const stopping = catchSignals();
  try {
    if (readyFile !== undefined) writeReadyFile(readyFile, ready);
    if (json && !quiet) print(JSON.stringify({ msg: 'ready', ...ready }));
    else if (!quiet) print(await banner(server, config));
  } catch (error) {
    stopping.ignore();
    await server.close();
    throw error;
  }
  await stopping.signaled;
  await server.close();
  if (readyFile !== undefined) removeOwnReadyFile(readyFile);
}

/** Prints to standard output. The server keeps running if the output cannot be written. */
function print(text: string): void {
  logOutput(1).write(`${text}\n`);
}

/**
 * Waits for SIGINT, SIGTERM or SIGHUP, then stops the server, which first completes running requests. A second signal
 * exits immediately.
 *
 * @param onHangup runs on SIGHUP instead of stopping the server.
 */
export async function stopOnSignal(
  server: { close(): Promise<void> },
  onHangup?: () => unknown,
): Promise<void> {
  await catchSignals(onHangup).signaled;
  await server.close();
}

/** Prevents signals from ending the process. A script may send one as soon as it sees the ready file. */
function catchSignals(onHangup?: () => unknown): { readonly signaled: Promise<void>; ignore(): void } {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
  if (onHangup === undefined) signals.push('SIGHUP');
  else process.on('SIGHUP', onHangup);
  let onSignal = (): void => undefined;
  const signaled = new Promise<void>((resolve) => {
    let isSignalled = false;
    onSignal = () => {
      if (isSignalled) process.exit(1);
      isSignalled = true;
      resolve();
    };
  });
  for (const signal of signals) process.on(signal, onSignal);
  const ignore = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  return { signaled, ignore };
}

function readiness(server: RunningSandbox, { prefix }: SandboxConfig): object {
  return {
    base_url: server.baseUrl,
    app_id: server.appId,
    app_secret: server.appSecret,
    ca_file: server.caFile,
    ...(server.controlToken === undefined ? {} : { control_token: server.controlToken }),
    ...(server.rpcUrl === undefined ? {} : { rpc_url: server.rpcUrl }),
    prefix,
    pid: process.pid,
    ...(server.adminUrl === undefined ? {} : { admin_url: server.adminUrl }),
  };
}

/**
 * Returns a signal that is aborted by SIGINT, SIGTERM or SIGHUP, or when the output pipe is closed. A second signal
 * exits immediately.
 */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(1);
      stopping.abort();
    });
  }
  process.stdout.on('error', () => stopping.abort());
  return stopping.signal;
}
