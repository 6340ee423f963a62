import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { Agent } from 'undici';
import { describe, expect, test } from 'vitest';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

/*
 * A failover by hand: `TEST_LONG=1 npx vitest run test/integration/storage/failover.test.ts`, as root, with Debian's
 * PostgreSQL. The primary is killed under load, its synchronous replica is promoted, and a proxy leads the connections
 * there, as HAProxy, a virtual address or a managed service does. The server is not restarted.
 */

const binaries = ['17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`).find(existsSync);
const isRun = process.env.TEST_LONG === '1' && binaries !== undefined && process.getuid?.() === 0;
const rounds = Number(process.env.FAILOVERS ?? 1);

function asPostgres(program: string, ...args: string[]): void {
  execFileSync('runuser', ['-u', 'postgres', '--', join(binaries!, program), ...args], { stdio: 'ignore' });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

interface Node {
  readonly port: number;
  readonly folder: string;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'custos-failover-'));
  execFileSync('chown', ['postgres', folder]);
  return folder;
}

function start({ folder, port }: Node): void {
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c hot_standby=on`;
  asPostgres('pg_ctl', '-D', folder, '-w', '-l', join(folder, 'log'), '-o', options, 'start');
}

async function ask(port: number, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  await client.connect();
  try {
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

/** A primary with one streaming replica, whose confirmation each commit awaits. */
async function startPair(): Promise<{ primary: Node; replica: Node }> {
  const primary = { port: await freePort(), folder: newFolder() };
  asPostgres('initdb', '--no-sync', '-D', primary.folder, '--auth=trust', '--encoding=UTF8', '--no-locale');
  start(primary);
  await ask(primary.port, 'create database custos');
  const replica = { port: await freePort(), folder: newFolder() };
  asPostgres(
    'pg_basebackup',
    ...[
      '-h',
      '127.0.0.1',
      '-p',
      String(primary.port),
      '-U',
      'postgres',
      '-D',
      replica.folder,
      '-R',
      '-X',
      'stream',
    ],
  );
  start(replica);
  await ask(primary.port, "alter system set synchronous_standby_names = '*'");
  await ask(primary.port, 'select pg_reload_conf()');
  for (let isSynchronous = false; !isSynchronous; ) {
    const [row] = await ask(primary.port, 'select sync_state from pg_stat_replication');
    isSynchronous = row?.sync_state === 'sync';
  }
  return { primary, replica };
}

/** Leads connections to one of several servers. */
async function startProxy(target: { port: number }) {
  const open = new Set<Socket>();
  const server = createServer((from) => {
    const to = connect(target.port, '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      open.add(one);
      one
        .on('error', () => other.destroy())
        .on('close', () => {
          open.delete(one);
          other.destroy();
        });
      one.pipe(other);
    }
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port,
    stop() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

describe.runIf(isRun)('failover of the primary', () => {
  test.each(Array.from({ length: rounds }, (_, index) => index))(
    '%d: nothing acknowledged is lost',
    async () => {
      const { primary, replica } = await startPair();
      const target = { port: primary.port };
      const proxy = await startProxy(target);
      const env = {
        DATABASE_URL: `postgresql://postgres@127.0.0.1:${proxy.port}/custos`,
        CUSTOS_TRUST_PROXY: '127.0.0.1',
        CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
        CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
        CUSTOS_HOST: '127.0.0.1',
        CUSTOS_PORT: '0',
        CUSTOS_ADMIN_PORT: '0',
        CUSTOS_DRAIN_SECONDS: '0',
        CUSTOS_RATE_LIMIT: '10000',
      };
      expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
      const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
      if (created.code !== 0) throw new Error(created.stderr);
      const app = JSON.parse(created.stdout) as { id: string; secret: string };
      const custos = await startCustos(['serve'], { env });
      const ready = (): { url: string } | undefined =>
        custos
          .output()
          .stdout.split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
          .find(({ msg }) => msg === 'ready');
      await waitFor(() => ready() !== undefined || custos.process.exitCode !== null, 60_000);
      const agent = new Agent({ connections: 16 });
      const call = async (method: 'GET' | 'POST', path: string, body?: object) => {
        const answer = await agent.request({
          ...{ origin: ready()!.url, path, method },
          headers: {
            authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
            'service-app-id': app.id,
            'x-forwarded-proto': 'https',
            'content-type': 'application/json',
          },
          body: body === undefined ? null : JSON.stringify(body),
        });
        const { id } = (await answer.body.json()) as { id?: string };
        return { status: answer.statusCode, id, retryAfter: answer.headers['retry-after'] };
      };
      const acknowledged: string[] = [];
      const statuses: Record<string, number> = {};
      let [lastBeforeMs, firstAfterMs, killedMs] = [0, 0, Number.POSITIVE_INFINITY];
      let isOver = false;
      const keep = async (method: 'GET' | 'POST'): Promise<void> => {
        while (!isOver) {
          const body = method === 'POST' ? { chain_type: 'ethereum' } : undefined;
          const { status, id, retryAfter } = await call(
            method,
            method === 'POST' ? '/v1/wallets' : '/v1/wallets?limit=5',
            body,
          );
          const key = `${method} ${status}${status === 503 ? ` ${retryAfter === undefined ? 'without' : 'with'} Retry-After` : ''}`;
          statuses[key] = (statuses[key] ?? 0) + 1;
          if (method !== 'POST') continue;
          if (status === 200) {
            acknowledged.push(id!);
            if (performance.now() < killedMs) lastBeforeMs = performance.now();
            else if (firstAfterMs === 0 && target.port === replica.port) firstAfterMs = performance.now();
          } else await new Promise((resolve) => setTimeout(resolve, 50));
        }
      };
      const load = [...Array(8).fill('POST'), ...Array(4).fill('GET')].map((method) => keep(method));
      await waitFor(() => acknowledged.length > 200, 60_000);
      killedMs = performance.now();
      asPostgres('pg_ctl', '-D', primary.folder, '-m', 'immediate', 'stop');
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const before = acknowledged.length;
      asPostgres('pg_ctl', '-D', replica.folder, '-w', 'promote');
      target.port = replica.port;
      const switchedMs = performance.now();
      await waitFor(() => acknowledged.length > before + 200, 60_000);
      isOver = true;
      await Promise.all(load);
      const client = new Client({
        host: '127.0.0.1',
        port: replica.port,
        user: 'postgres',
        database: 'custos',
      });
      await client.connect();
      const { rows } = await client.query<{ id: string }>('select id from wallets');
      await client.end();
      const stored = new Set(rows.map(({ id }) => id));
      const figures = {
        acknowledged: acknowledged.length,
        stored: stored.size,
        statuses,
        awayMs: Math.round(firstAfterMs - lastBeforeMs),
        recoveredAfterSwitchMs: Math.round(firstAfterMs - switchedMs),
      };
      process.stdout.write(`${JSON.stringify(figures)}\n`);
      expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
      expect(Object.keys(statuses).filter((key) => !/ 200$|with Retry-After$/.test(key))).toEqual([]);
      await agent.destroy();
      expect((await custos.stop()).code).toBe(0);
      proxy.stop();
      spawnSync('runuser', [
        '-u',
        'postgres',
        '--',
        join(binaries!, 'pg_ctl'),
        '-D',
        replica.folder,
        '-m',
        'immediate',
        'stop',
      ]);
    },
    180_000,
  );
});
