import { randomBytes } from 'node:crypto';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import {
  askNode,
  asPostgres,
  copyNode,
  hasDebianPostgres,
  makeNode,
  type PostgresNode,
  startNode,
  stopNode,
} from '../../support/postgres/debian-postgres.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

/*
 * Lists from a real streaming replica: `TEST_LONG=1 npx vitest run test/integration/storage/streaming-replica.test.ts`,
 * as root, with Debian's PostgreSQL.
 */

const isRun = process.env.TEST_LONG === '1' && hasDebianPostgres;
const urlOf = ({ port }: PostgresNode): string => `postgresql://postgres@127.0.0.1:${port}/custos`;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test.runIf(isRun)(
  'lists are read from a replica, never miss what the app did, and survive its loss',
  { timeout: 180_000 },
  async () => {
    const primary = await makeNode();
    startNode(primary);
    await askNode(primary, 'create database custos');
    const replica = await copyNode(primary, '-R');
    startNode(replica);
    const env = {
      ...{ DATABASE_URL: urlOf(primary), CUSTOS_DATABASE_REPLICA_URL: urlOf(replica) },
      ...{ CUSTOS_TRUST_PROXY: '127.0.0.1', CUSTOS_PUBLIC_URLS: 'https://api.acme.example' },
      CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
      ...{ CUSTOS_HOST: '127.0.0.1', CUSTOS_PORT: '0', CUSTOS_ADMIN_PORT: '0', CUSTOS_DRAIN_SECONDS: '0' },
      CUSTOS_RATE_LIMIT: '0',
    };
    expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
    const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
    const app = JSON.parse(created.stdout) as { id: string; secret: string };
    const custos = await startCustos(['serve'], { env });
    const lines = (): { msg: string; url?: string }[] =>
      custos
        .output()
        .stdout.split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { msg: string });
    const said = (msg: string) => lines().filter((line) => line.msg === msg);
    const used = () => said('lists are read from the replica').length;
    const away = () => said('the replica cannot be used; lists are read from the primary').length;
    await waitFor(() => said('ready').length > 0 && used() === 1, 60_000);
    const agent = new Agent({ connections: 8 });
    const call = async (method: 'GET' | 'POST', path: string, body?: object) => {
      const { statusCode, body: answer } = await agent.request({
        ...{
          origin: said('ready')[0]!.url!,
          path,
          method,
          body: body === undefined ? null : JSON.stringify(body),
        },
        headers: {
          authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
          ...{ 'service-app-id': app.id, 'x-forwarded-proto': 'https', 'content-type': 'application/json' },
        },
      });
      return { status: statusCode, body: (await answer.json()) as { id: string; data: { id: string }[] } };
    };
    const list = async () => (await call('GET', '/v1/wallets?limit=5')).body.data.map(({ id }) => id);
    /** Connections of the replica whose last statement was a list. */
    const listsOn = async (node: PostgresNode): Promise<number> => {
      const [row] = await askNode(
        node,
        `select count(*)::int as n from pg_stat_activity where datname = 'custos' and query like '%"wallets"%' and pid <> pg_backend_pid()`,
      );
      return row!.n as number;
    };

    // What an app has just created is in its lists.
    for (let made = 0; made < 100; made += 1) {
      const { body } = await call('POST', '/v1/wallets', { chain_type: 'ethereum' });
      expect((await list())[0]).toBe(body.id);
    }
    expect(await listsOn(replica)).toBe(0);
    await pause(2_500);
    const newest = await list();
    expect(await listsOn(replica)).toBeGreaterThan(0);
    expect(newest).toHaveLength(5);

    // Under load, its loss is not seen.
    let isOver = false;
    const statuses: Record<number, number> = {};
    const keep = async () => {
      while (!isOver) {
        const { status } = await call('GET', '/v1/wallets?limit=5');
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    };
    const load = [keep(), keep(), keep(), keep()];
    await pause(1_000);
    stopNode(replica);
    await waitFor(() => away() === 1);
    startNode(replica);
    await waitFor(() => used() === 2, 60_000);
    await pause(1_000);
    expect(await listsOn(replica)).toBeGreaterThan(0);
    asPostgres('pg_ctl', '-D', replica.folder, '-w', 'promote');
    await waitFor(() => away() === 2);
    isOver = true;
    await Promise.all(load);
    process.stdout.write(`${JSON.stringify(statuses)}\n`);
    expect(Object.keys(statuses)).toEqual(['200']);
    await agent.destroy();
    expect((await custos.stop()).code).toBe(0);
    stopNode(replica);
    stopNode(primary);
  },
);
