import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from './credentials.ts';
import { type Address, freePort, launch, type RunningServer, runToEnd, temporaryFolder } from './launch.ts';

/** How Custos is started. */
export const programs = { bundle: join('dist', 'custos.js') } as const;
// As in `npm start` and in the image.
const nodeFlags = ['--max-semi-space-size=8'];

export interface CustosOptions {
  readonly command: 'sandbox' | 'mock';
  readonly https?: boolean;
  /** Without the log line of each request. Default: true. */
  readonly isQuiet?: boolean;
  readonly flags?: readonly string[];
  /** A module that is loaded before the program, relative to the root. */
  readonly before?: string;
}

/** Starts Custos from its bundle with the credentials of the comparison. */
export async function launchCustos(options: CustosOptions): Promise<RunningServer> {
  const { command, https = false, isQuiet = true, flags = [], before } = options;
  const readyFile = join(temporaryFolder(), 'ready.json');
  return launch({
    args: [
      ...nodeFlags,
      ...(before === undefined ? [] : ['--import', `./${before}`]),
      programs.bundle,
      ...custosArguments(command, 0),
      ...['--ready-file', readyFile],
      ...(isQuiet ? ['--quiet'] : []),
      // A server that is not being measured does nothing.
      ...(command === 'sandbox' ? ['--prepared-keys', '0'] : []),
      ...flags,
    ],
    ready: () => {
      if (!existsSync(readyFile)) return undefined;
      const ready = JSON.parse(readFileSync(readyFile, 'utf8')) as { base_url: string; ca_file: string };
      return {
        origin: https ? ready.base_url : ready.base_url.replace('https:', 'http:'),
        caPem: readFileSync(ready.ca_file, 'utf8'),
        ...credentials,
      };
    },
  });
}

/** The command line of a server on loopback that takes plain HTTP too. */
export function custosArguments(command: 'sandbox' | 'mock', port: number): string[] {
  const { appId, appSecret } = credentials;
  const listening = ['--port', String(port), '--plain-http'];
  // The mock accepts every app.
  if (command === 'mock') return [command, ...listening];
  return [command, ...listening, '--app-id', appId, '--app-secret', appSecret];
}

/** The environment variables of `custos serve`: of its only database, or of its cells file. */
export interface ServeEnvironment {
  readonly CUSTOS_MASTER_KEY: string;
  readonly DATABASE_URL?: string;
  readonly CUSTOS_CELLS_FILE?: string;
  readonly CUSTOS_DATABASE_POOL?: string;
}

/** Migrates the database and creates an app in it. */
export async function makeApp(
  { DATABASE_URL }: { readonly DATABASE_URL: string },
  settings: object = {},
): Promise<Pick<Address, 'appId' | 'appSecret'>> {
  const text = await runToEnd([programs.bundle, 'apps', 'create', '--name', 'Bench', '--json'], {
    DATABASE_URL,
  });
  const { id, secret } = JSON.parse(text) as { id: string; secret: string };
  if (Object.keys(settings).length > 0) {
    const change = ['apps', 'configure', id, '--settings', JSON.stringify(settings)];
    await runToEnd([programs.bundle, ...change], { DATABASE_URL });
  }
  return { appId: id, appSecret: secret };
}

/** Starts the production server as it runs behind a proxy that terminates TLS and says so in a header. */
export async function launchServe(
  environment: ServeEnvironment,
  app: Pick<Address, 'appId' | 'appSecret'>,
  workers = 1,
): Promise<RunningServer> {
  return launchOnPort([programs.bundle, 'serve'], environment, { app, workers });
}

async function launchOnPort(
  args: readonly string[],
  environment: ServeEnvironment,
  { app, workers }: { app: Pick<Address, 'appId' | 'appSecret'>; workers: number },
): Promise<RunningServer> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  return launch({
    args: [...nodeFlags, ...args],
    env: {
      ...environment,
      CUSTOS_HOST: '127.0.0.1',
      CUSTOS_PORT: String(port),
      CUSTOS_WORKERS: String(workers),
      CUSTOS_ADMIN_PORT: 'off',
      CUSTOS_TRUST_PROXY: '127.0.0.1',
      CUSTOS_PUBLIC_URLS: origin,
      CUSTOS_RATE_LIMIT: '0',
      // The load is as much as the server can do. What it refuses is the subject of the case `overload`.
      CUSTOS_MAX_DELAY_MS: '0',
      CUSTOS_LOG_LEVEL: 'error',
    },
    ready: async () => {
      const isUp = await fetch(origin).then(
        () => true,
        () => false,
      );
      return isUp ? { origin, ...app, isBehindProxy: true } : undefined;
    },
  });
}
