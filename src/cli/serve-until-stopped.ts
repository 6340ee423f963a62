import { logOutput } from '../adapters/log-output.ts';
import type { RunningSandbox } from '../compose/local.ts';
import type { SandboxConfig } from '../config.ts';
import { banner } from './banner.ts';
import { withdrawReadyFile, writeReadyFile } from './ready-file.ts';

/** Prints that the server is ready, writes the ready file, and returns once the server has stopped. */
export async function serveUntilStopped(server: RunningSandbox, config: SandboxConfig): Promise<void> {
  const { readyFile, json, quiet } = config;
  const ready = readiness(server, config);
  const stopping = catchSignals();
  try {
    if (readyFile !== undefined) writeReadyFile(readyFile, ready);
    if (json && !quiet) print(JSON.stringify({ msg: 'ready', ...ready }));
    else if (!quiet) print(banner(server, config));
  } catch (error) {
    stopping.ignore();
    await server.close();
    throw error;
  }
  await stopping.signalled;
  await server.close();
  if (readyFile !== undefined) withdrawReadyFile(readyFile);
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
  await catchSignals(onHangup).signalled;
  await server.close();
}

/** From now on a signal does not end the process: a script that sees the ready file may send one at once. */
function catchSignals(onHangup?: () => unknown): { readonly signalled: Promise<void>; ignore(): void } {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
  if (onHangup === undefined) signals.push('SIGHUP');
  else process.on('SIGHUP', onHangup);
  let onSignal = (): void => undefined;
  const signalled = new Promise<void>((resolve) => {
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
  return { signalled, ignore };
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
