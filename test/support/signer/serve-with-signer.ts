import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { freshPostgres } from '../postgres/borrow-database.ts';
import { runCommand, type StartedCustos, startCustos, temporaryFolder, waitFor } from '../run-custos.ts';

interface Answered {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly body: never;
}

type Settings = Readonly<Record<string, string | undefined>>;

/** `custos serve` on PostgreSQL, with the signer that it has started. */
export interface ServedWithSigner extends StartedCustos {
  readonly masterKey: Buffer;
  readonly databaseUrl: string;
  readonly env: Record<string, string>;
  readonly app: { readonly id: string; readonly secret: string };
  /** Sends a request of the app. With a body, it is a POST, unless another method is given; otherwise a GET. */
  call(path: string, body?: object, headers?: object, method?: 'PATCH'): Promise<Answered>;
  /** Returns the process id of the server's only child. */
  signerPid(): number;
  /** Starts another server with the same data. `settings` are added or removed. */
  startBeside(settings: Settings): Promise<ServedWithSigner>;
  end(): Promise<void>;
}

export async function serveWithSigner({
  nodeOptions = [],
  login,
  settings = {},
}: {
  readonly nodeOptions?: readonly string[];
  /** Settings that are added to the usual ones of these tests, or removed. */
  readonly settings?: Settings;
  /** The public key (PEM) of the app's own login. The server and the signer verify its tokens. */
  readonly login?: string;
} = {}): Promise<ServedWithSigner> {
  const folder = temporaryFolder();
  const masterKey = randomBytes(32);
  const { cert, key, ca } = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const databaseUrl = await freshPostgres();
  const all: Settings = {
    DATABASE_URL: databaseUrl,
    CUSTOS_TLS_CERT: file('cert.pem', cert),
    CUSTOS_TLS_KEY: file('key.pem', key),
    CUSTOS_MASTER_KEY_FILE: file('master.key', masterKey.toString('hex')),
    CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
    CUSTOS_HOST: '127.0.0.1',
    CUSTOS_PORT: '0',
    CUSTOS_ADMIN_PORT: 'off',
    CUSTOS_RATE_LIMIT: '0',
    CUSTOS_MAX_DELAY_MS: '0',
    CUSTOS_DATABASE_POOL: '2',
    ...settings,
  };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  const env = Object.fromEntries(given) as Record<string, string>;
  const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
  const app = JSON.parse(created.stdout) as { id: string; secret: string };
  const logins = { [app.id]: { verification_key: login } };
  const ofLogin =
    login === undefined ? {} : { CUSTOS_USER_LOGINS_FILE: file('logins.json', JSON.stringify(logins)) };
  if (login !== undefined) {
    const ofApp = JSON.stringify({ jwt_auth: { verification_key: login } });
    await runCommand(['apps', 'configure', app.id, '--settings', ofApp], { env });
  }
  const place = { ca, app, masterKey, databaseUrl };
  return serveIn(place, { ...env, ...ofLogin }, nodeOptions);
}

type Place = Pick<ServedWithSigner, 'app' | 'masterKey' | 'databaseUrl'> & { readonly ca: string };

async function serveIn(
  place: Place,
  env: Record<string, string>,
  nodeOptions: readonly string[],
): Promise<ServedWithSigner> {
  const { app } = place;
  const custos = await startCustos(['serve'], { env, nodeOptions });
  const url = () => /"url":"([^"]+)".*"ready"/.exec(custos.output().stdout)?.[1];
  await waitFor(() => url() !== undefined || custos.process.exitCode !== null);
  const origin = url();
  if (origin === undefined) throw new Error(`serve ended: ${(await custos.ended()).stderr}`);
  const agent = new Agent({ connect: { ca: place.ca } });
  return {
    ...custos,
    ...place,
    env,
    startBeside: (settings) => serveIn(place, { ...env, ...settings } as Record<string, string>, nodeOptions),
    async call(path, body, headers = {}, method) {
      const answer = await agent.request({
        ...{ origin, path },
        ...(body === undefined
          ? { method: 'GET' }
          : { method: method ?? 'POST', body: JSON.stringify(body) }),
        headers: {
          authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
          'service-app-id': app.id,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      });
      const retryAfter = answer.headers['retry-after'];
      return { status: answer.statusCode, retryAfter, body: (await answer.body.json()) as never };
    },
    signerPid() {
      const { pid } = custos.process;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
      if (children.length !== 1) throw new Error(`expected one child, got ${children.join(', ')}`);
      return Number(children[0]);
    },
    async end() {
      await custos.stop('SIGKILL');
      await agent.destroy();
    },
  };
}
