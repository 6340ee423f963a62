import { renameSync, rmSync, writeFileSync } from 'node:fs';
import type { RunningSandbox } from '../compose/local.ts';
import type { SandboxConfig } from '../config.ts';
import { banner } from './banner.ts';

/** Tells that the server is ready, to people and to programs, and returns when it has stopped. */
export async function serveUntilStopped(server: RunningSandbox, config: SandboxConfig): Promise<void> {
  try {
    if (config.readyFile !== undefined) writeReadyFile(config.readyFile, readiness(server));
    if (config.json && !config.quiet) console.log(JSON.stringify({ msg: 'ready', ...readiness(server) }));
    else if (!config.quiet) console.log(banner(server, config));
  } catch (error) {
    await server.close();
    throw error;
  }
  await stopOnSignal(server);
  if (config.readyFile !== undefined) rmSync(config.readyFile, { force: true });
}

/**
 * Waits for SIGINT, SIGTERM or SIGHUP, then stops the server, which finishes what it has begun.
 * A second signal ends the process at once.
 */
export async function stopOnSignal(server: { close(): Promise<void> }): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  await new Promise<void>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve());
  });
  for (const signal of signals) process.once(signal, () => process.exit(1));
  await server.close();
}

function readiness(server: RunningSandbox): object {
  return {
    base_url: server.baseUrl,
    app_id: server.appId,
    app_secret: server.appSecret,
    ca_file: server.caFile,
    pid: process.pid,
    ...(server.adminUrl === undefined ? {} : { admin_url: server.adminUrl }),
  };
}

/** A reader finds the whole file or none. It holds the app's secret and is its owner's alone. */
function writeReadyFile(path: string, content: object): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}
