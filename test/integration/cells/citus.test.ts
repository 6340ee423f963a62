import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { migrate } from '../../../src/storage/migrate.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import type { Finding } from '../../../src/tools/findings.ts';
import { allow, payment, type Rule } from '../../contract/policies/enforced/policies.ts';
import { startProduction } from '../../support/monitoring/production.ts';
import { type CitusCells, citusUrl, inSchema, openCitusCells } from '../../support/postgres/citus-cells.ts';
import { runCommand } from '../../support/run-custos.ts';

// `TEST_CITUS_URL=… npx vitest run test/integration/cells/citus.test.ts`

const ROUNDS = 10;
const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';

describe.runIf(citusUrl !== undefined)('two cells on a cluster of Citus (needs TEST_CITUS_URL)', () => {
  let cells: CitusCells;
  beforeAll(async () => {
    cells = await openCitusCells(citusUrl!);
  });
  afterAll(() => cells.close());

  test('each app works, and its rows are on the worker of its cell', async () => {
    for (const cell of ['one', 'two'] as const) {
      const { status, body } = await cells.createWallet(cell);
      expect(status).toBe(200);
      const signed = await cells.call(cell, 'POST', `/v1/wallets/${body.id}/rpc`, {
        method: 'personal_sign',
        params: { message: 'Hello', encoding: 'utf-8' },
      });
      expect(signed.status).toBe(200);
    }
    expect((await cells.ownerOf('one')).group).not.toBe((await cells.ownerOf('two')).group);
  });

  test('a schema is moved under load: no request fails, nothing is held or lost, also after a restart', async () => {
    const from = await cells.ownerOf('one');
    const to = cells.otherThan(from);
    const acknowledged: string[] = [];
    const statuses = new Set<number>();
    let isOver = false;
    const load = async (): Promise<void> => {
      while (!isOver) {
        const { status, body } = await cells.createWallet('one');
        statuses.add(status);
        if (status === 200) acknowledged.push(body.id!);
      }
    };
    const work = [load(), load(), load()];
    await cells.move('one', to);
    const known = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(known + 20);
    isOver = true;
    await Promise.all(work);
    expect(await cells.ownerOf('one')).toEqual(to);
    expect([...statuses]).toEqual([200]);
    const stored = await cells.walletsOf('one');
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    expect(await cells.server().metrics()).toContain('custos_changes_held{cell="one"} 0');
    await cells.restart(() => cells.move('one', from));
    expect((await cells.createWallet('one')).status).toBe(200);
    expect(await cells.ask(`select cause from "${cells.schemas.one}".restores`)).toEqual([]);
  });

  test('other data on the node of a cell is noticed, as after a restore of the worker, and concerns no other cell', async () => {
    const { two } = cells.schemas;
    await cells.restart(() =>
      cells.ask(`update "${two}".database_identity set cluster = regexp_replace(cluster, '=.*', '=1')`),
    );
    expect((await cells.createWallet('two')).status).toBe(503);
    expect((await cells.createWallet('one')).status).toBe(200);
    expect(await cells.ask(`select cause from "${two}".restores`)).toEqual([{ cause: 'copied' }]);
    await cells.run('restored', 'release', '--cell', 'two');
    await expect.poll(async () => (await cells.createWallet('two')).status, { timeout: 30_000 }).toBe(200);
  });

  test('a server that would connect to a worker refuses, with advice', async () => {
    const url = inSchema((await cells.ownerOf('one')).url, cells.schemas.one);
    const single = { CUSTOS_MASTER_KEY: cells.env.CUSTOS_MASTER_KEY, DATABASE_URL: url };
    await expect(startProduction(single)).rejects.toThrow(
      /is a worker of a Citus cluster.*name the coordinator in the database URL of all servers/,
    );
    const migrated = await runCommand(['migrate'], { env: { DATABASE_URL: url } });
    expect([migrated.code, migrated.stderr]).toEqual([
      1,
      expect.stringContaining('is a worker of a Citus cluster'),
    ]);
  });

  test('limits of locks reach the workers: those of sessions, and those of one transaction', async () => {
    const client = new Client({ connectionString: inSchema(citusUrl!, cells.schemas.one) });
    await client.connect();
    const there = async (): Promise<string> =>
      (
        await client.query<{ there: string }>(
          "select current_setting('lock_timeout') as there from (select count(*) from wallets) as here",
        )
      ).rows[0]!.there;
    expect(await there()).toBe('5s');
    await client.query('begin');
    await client.query("set local lock_timeout = '250ms'");
    expect(await there()).toBe('250ms');
    await client.query('rollback');
    await client.end();
  });

  test('the doctor says what the cluster means', async () => {
    const settings = { CUSTOS_TRUST_PROXY: '127.0.0.1', CUSTOS_PUBLIC_URLS: 'https://api.acme.example' };
    const { stdout } = await runCommand(['doctor', '--serve', '--json'], {
      env: { ...cells.env, ...settings },
    });
    const findings = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Finding);
    const { group } = await cells.ownerOf('one');
    expect(findings).toContainEqual({
      ...{ name: 'one: cluster', state: 'ok' },
      text: expect.stringContaining(
        `node ${group} of Citus has the rows of this schema, and the coordinator its locks`,
      ),
    });
  });

  test('requests of two servers at the same time exceed no cap, and share one effect by an idempotency key', async () => {
    const other = await cells.serve();
    try {
      const alternating = (at: number) => (at % 2 === 0 ? cells.server().baseUrl : other.baseUrl);
      const made = async (target: string, body: object): Promise<string> => {
        const response = await cells.call('two', 'POST', target, body);
        expect(response).toMatchObject({ status: 200 });
        return response.body.id!;
      };
      for (let round = 0; round < ROUNDS; round += 1) {
        const aggregation = await made('/v1/aggregations', {
          ...{ name: 'Spent in an hour', method: 'eth_signTransaction' },
          metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
          window: { type: 'rolling', seconds: 3600 },
        });
        const cap = {
          field_source: 'reference',
          field: `aggregation.${aggregation}`,
          operator: 'lte',
          value: '100',
        };
        const rules = [allow('eth_signTransaction', cap as Rule['conditions'][number])];
        const policy = await made('/v1/policies', {
          version: '1.0',
          name: 'Cap',
          chain_type: 'ethereum',
          rules,
        });
        const wallet = await made('/v1/wallets', { chain_type: 'ethereum', policy_ids: [policy] });
        const pay = (at: number) =>
          cells.call('two', 'POST', `/v1/wallets/${wallet}/rpc`, payment({ to: shop, value: 40 }), {
            from: alternating(at),
          });
        const paid = await Promise.all(Array.from({ length: 8 }, (_, at) => pay(at)));
        expect(paid.filter(({ status }) => status === 200)).toHaveLength(2);
        const key = { 'service-idempotency-key': randomBytes(8).toString('hex') };
        const created = await Promise.all(
          Array.from({ length: 8 }, (_, at) =>
            cells.call(
              'two',
              'POST',
              '/v1/wallets',
              { chain_type: 'ethereum' },
              { from: alternating(at), headers: key },
            ),
          ),
        );
        const ids = created.flatMap(({ status, body }) => (status === 200 ? [body.id] : []));
        expect(ids.length).toBeGreaterThan(0);
        expect(new Set(ids).size).toBe(1);
      }
    } finally {
      await other.close();
    }
  });

  test('every later migration runs on a schema that is already distributed', async () => {
    const schema = `${cells.schemas.one}_bare`;
    await cells.ask(`create schema "${schema}"`);
    const first = migrations.findIndex(({ name }) => name.startsWith('0024-'));
    const url = inSchema(citusUrl!, schema);
    const migrateWith = async (list: typeof migrations): Promise<string[]> => {
      const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1, timeouts: 'none' });
      return migrate(database.orm, list).finally(() => database.close());
    };
    try {
      await migrateWith(migrations.slice(0, first));
      await cells.ask('select citus_schema_distribute($1)', schema);
      expect(await migrateWith(migrations)).toEqual(migrations.slice(first).map(({ name }) => name));
    } finally {
      await cells.ask(`drop schema "${schema}" cascade`);
    }
  });
});
