import { randomBytes } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { Agent } from 'undici';
import { describe, expect, test } from 'vitest';
import {
  askNode,
  asPostgres,
  copyNode,
  freePort,
  hasDebianPostgres,
  makeNode,
  type PostgresNode,
  startNode,
  stopNode,
} from '../../support/postgres/debian-postgres.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

/*
 * A failover by hand: `TEST_LONG=1 npx vitest run test/integration/storage/failover.test.ts`, as root, with Debian's
 * PostgreSQL. The primary is killed under load, its synchronous replica is promoted, and a proxy leads the connections
 * there, as HAProxy, a virtual address or a managed service does. The server is not restarted.
 */

const isRun = process.env.TEST_LONG === '1' && hasDebianPostgres;
const rounds = Number(process.env.FAILOVERS ?? 1);

/** How soon changes are accepted again after connections lead to the new primary. */
const RECOVERY_MS = 5_000;

/** A primary with one streaming replica, whose confirmation each commit awaits. */
async function startPair(): Promise<{ primary: PostgresNode; replica: PostgresNode }> {
  const primary = await makeNode();
  startNode(primary);
  await askNode(primary, 'create database custos');
  const replica = await copyNode(primary, '-R');
  startNode(replica);
  await askNode(primary, "alter system set synchronous_standby_names = '*'");
  await askNode(primary, 'select pg_reload_conf()');
  for (let isSynchronous = false; !isSynchronous; ) {
    const [row] = await askNode(primary, 'select sync_state from pg_stat_replication');
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
      stopNode(primary);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const before = acknowledged.length;
      asPostgres('pg_ctl', '-D', replica.folder, '-w', 'promote');
      target.port = replica.port;
      const switchedMs = performance.now();
      await waitFor(() => acknowledged.length > before + 200, 60_000);
      isOver = true;
      await Promise.all(load);
      const rows = (await askNode(replica, 'select id from wallets', 'custos')) as { id: string }[];
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
      expect(figures.recoveredAfterSwitchMs).toBeLessThan(RECOVERY_MS);
      expect(Object.keys(statuses).filter((key) => !/ 200$|with Retry-After$/.test(key))).toEqual([]);
      await agent.destroy();
      expect((await custos.stop()).code).toBe(0);
      proxy.stop();
      stopNode(replica);
    },
    180_000,
  );
});
