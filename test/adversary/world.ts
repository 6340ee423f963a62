import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeCertificate } from '../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../src/adapters/runtime.ts';
import type { Random } from '../simulation/random.ts';
import { type Anvil, startAnvil } from '../support/anvil.ts';
import { type LyingNode, startLyingNode } from '../support/nodes/lying-node.ts';
import { freePort } from '../support/postgres/debian-postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres/postgres-proxy.ts';
import { runCommand, type StartedCustos, startCustos, temporaryFolder } from '../support/run-custos.ts';
import { childrenOf, type Notes, workedMs } from './observe.ts';

// All that a run needs: the processes under attack, each with a supervisor, and what stands between them.

const CHAIN = 'eip155:8453';
const PUBLIC_URL = 'https://api.acme.example';

/** Of a web page from which users of the honest app log in. */
const PAGE_ORIGIN = 'https://app.acme.example';
/** Its code is what the outsider guesses. */
const account = { email: 'a@example.com', phone_number: '+15555550100', otp_code: '847261' };

/** The router that the signer is configured with. */
export const swapContracts = { router: `0x${'a1'.repeat(20)}`, wrapped: `0x${'a2'.repeat(20)}` };

export interface App {
  readonly id: string;
  readonly secret: string;
}

/** A process that is started again when it was killed; an end of its own is a fault. */
export interface Supervised {
  pid(): number;
  /** Kills one of its own processes, if it has some, and resolves when it is ready again. */
  killChild(random: Random): Promise<void>;
  /** Kills it and resolves when it is ready again; `toFullDisk`: its next output goes there. */
  kill(signal?: 'SIGKILL' | 'SIGTERM', toFullDisk?: boolean): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Stops reading its output. */
  holdOutput(isHeld: boolean): void;
  end(): Promise<void>;
}

export interface World extends AsyncDisposable {
  readonly origin: string;
  readonly adminUrl: string;
  readonly ca: string;
  readonly socket: string;
  readonly honest: App;
  readonly tenant: App;
  readonly signer: Supervised;
  readonly server: Supervised;
  readonly proxy: PostgresProxy;
  readonly node: LyingNode;
  readonly anvil: Anvil;
}

/** @param databaseUrl of a PostgreSQL database that is empty or migrated, and not used otherwise. */
export async function openWorld(databaseUrl: string, notes: Notes, env: Record<string, string> = {}) {
  await using opened = new AsyncDisposableStack();
  const folder = temporaryFolder();
  const { cert, key, ca } = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  mkdirSync(join(folder, 'signer'), { mode: 0o700 });
  const socket = join(folder, 'signer', 'socket');
  const keys = { CUSTOS_MASTER_KEY_FILE: file('master.key', randomBytes(32).toString('hex')) };
  const routers = { CUSTOS_SWAP_ROUTERS: `${CHAIN}=${swapContracts.router},${swapContracts.wrapped}` };
  const [port, adminPort] = [await freePort(), await freePort()];
  const proxy = opened.use(await startPostgresProxy(databaseUrl));
  const anvil = opened.use(await startAnvil(Number(CHAIN.split(':')[1])));
  const node = opened.use(await startLyingNode(anvil.url));
  const settings = {
    DATABASE_URL: proxy.url,
    CUSTOS_SIGNER_SOCKET: socket,
    CUSTOS_TLS_CERT: file('cert.pem', cert),
    CUSTOS_TLS_KEY: file('key.pem', key),
    CUSTOS_PUBLIC_URLS: PUBLIC_URL,
    CUSTOS_HOST: '127.0.0.1',
    CUSTOS_PORT: String(port),
    CUSTOS_ADMIN_PORT: String(adminPort),
    CUSTOS_DRAIN_SECONDS: '0',
    // The liar comes first: it is asked first.
    CUSTOS_RPC: `${CHAIN}=${node.url},${anvil.url}`,
    CUSTOS_CONFIRMATIONS: `${CHAIN}=off`,
    ...env,
  };
  const command = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(args, {
      env: { ...settings, DATABASE_URL: databaseUrl },
    });
    if (code !== 0) throw new Error(`custos ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const signer = await supervise(notes, {
    name: 'signer',
    start: () => startCustos(['signer', '--socket', socket], { env: { ...keys, ...routers } }),
    isReady: async ({ output }) => output().stdout.includes('"ready"'),
  });
  opened.defer(() => signer.end());
  await command('migrate');
  const create = async (name: string): Promise<App> =>
    JSON.parse(await command('apps', 'create', '--name', name, '--json'));
  const [honest, tenant] = [await create('Honest'), await create('Mallory')];
  const settingsOfApp = {
    allowed_origins: [PAGE_ORIGIN],
    block_test_logins: false,
    test_accounts: [account],
  };
  await command('apps', 'configure', honest.id, '--settings', JSON.stringify(settingsOfApp));
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const server = await supervise(notes, {
    name: 'server',
    start: (stdio) => startCustos(['serve'], { env: settings, stdio }),
    isReady: async () => (await fetch(`${adminUrl}/readyz`).catch(() => undefined))?.status === 200,
  });
  opened.defer(() => server.end());
  const kept = opened.move();
  const origin = `https://127.0.0.1:${port}`;
  const world: World = {
    ...{ origin, adminUrl, ca, socket, honest, tenant, signer, server, proxy, node, anvil },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
  return world;
}

interface Kind {
  readonly name: string;
  readonly start: (stdio: 'pipe' | ['ignore', number, number]) => Promise<StartedCustos>;
  readonly isReady: (started: StartedCustos) => Promise<boolean>;
}

const START_MS = 60_000;

async function supervise(notes: Notes, { name, start, isReady }: Kind): Promise<Supervised> {
  let current: StartedCustos;
  let isExpected = false;

  async function run(toFullDisk = false): Promise<void> {
    const disk = toFullDisk ? openSync('/dev/full', 'w') : undefined;
    const started = await start(disk === undefined ? 'pipe' : ['ignore', disk, disk]);
    if (disk !== undefined) closeSync(disk);
    current = started;
    isExpected = false;
    let hasEnded = false;
    void started.ended().then(({ code, stderr }) => {
      hasEnded = true;
      if (!isExpected) notes.fault('a process ended', `${name} with ${code}: ${stderr.slice(-500)}`);
    });
    await untilReady(started, () => hasEnded);
  }
  async function untilReady(started: StartedCustos, hasEnded = () => false): Promise<void> {
    const untilMs = performance.now() + START_MS;
    while (!(await isReady(started))) {
      if (hasEnded() || performance.now() > untilMs)
        throw new Error(`${name}: ${JSON.stringify(started.output())}`);
      await pause(30);
    }
  }
  await run();
  return {
    pid: () => current.process.pid!,
    async kill(signal = 'SIGKILL', toFullDisk = false) {
      isExpected = true;
      await current.stop(signal);
      await run(toFullDisk);
    },
    async killChild(random) {
      const children = childrenOf(current.process.pid!);
      if (children.length === 0) return;
      process.kill(random.pick(children), 'SIGKILL');
      await pause(500);
      await untilReady(current);
    },
    signal: (signal) => void current.process.kill(signal),
    holdOutput(isHeld) {
      if (isHeld) current.process.stdout?.pause();
      else current.process.stdout?.resume();
    },
    async end() {
      isExpected = true;
      await current.stop('SIGKILL');
    },
  };
}

const PROBE_EVERY_MS = 200;
const PROBE_LIMIT_MS = 30_000;

/** Asks the server whether it lives, and its processes how large they are. */
export async function watch(world: World, notes: Notes, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { server, signer, adminUrl } = world;
    for (const each of [server.pid(), ...childrenOf(server.pid())]) notes.resident('server', each);
    notes.resident('signer', signer.pid());
    const pid = server.pid();
    const [fromMs, before] = [performance.now(), workedMs(pid)];
    await fetch(`${adminUrl}/healthz`, { signal: AbortSignal.timeout(PROBE_LIMIT_MS) })
      .then((answer) => answer.arrayBuffer())
      .catch(() => undefined);
    const after = workedMs(pid);
    const cpuMs = before === undefined || after === undefined ? undefined : after - before;
    notes.probe({ process: 'server', fromMs, untilMs: performance.now(), cpuMs });
    await pause(PROBE_EVERY_MS);
  }
}
