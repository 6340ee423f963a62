import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { administerApps } from '../../../src/admin/administration.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { readStatements } from '../../../src/storage/schema/migration-statements.ts';
import { startProduction, type TestProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

/*
 * This version beside the next one: while its server runs, a migration of tomorrow adds to every table what migrations may
 * add, and rows are written that have it. The other direction, the version before beside this one, is
 * previous-version.test.ts, by hand.
 */

const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };

async function migrateToTomorrow(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    "select relname as name from pg_class where relkind in ('r', 'p') and not relispartition and relnamespace = current_schema()::regnamespace and relname <> 'schema_migrations'",
  );
  for (const { name } of rows) {
    const migration = `
      alter table "${name}" add "of_tomorrow" text null;
      alter table "${name}" add "count_of_tomorrow" int not null default 7;
      create index "${name}_of_tomorrow" on "${name}" ("of_tomorrow");
      update "${name}" set "of_tomorrow" = 'x';`;
    // The rule of the house admits all of it.
    expect(readStatements(migration).filter(({ contracts }) => contracts !== undefined)).toEqual([]);
    await client.query(migration);
  }
  await client.query("insert into schema_migrations (name) values ('0999-of-tomorrow')");
  await client.end();
}

test('a server goes on while the next version adds to the schema, and another one of its version starts', async () => {
  const url = await freshPostgres();
  const app = await administerApps({ kind: 'postgres', url }).createApp('Globex');
  const start = () => startProduction({ ...keys, DATABASE_URL: url });
  const call = async <Body>(
    { baseUrl, proxied }: TestProduction,
    method: string,
    path: string,
    body?: object,
  ) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        ...proxied,
        'service-app-id': app.id,
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Body };
  };
  /** Reads and writes many tables, with statements of both ways of storage. */
  const use = async (server: TestProduction): Promise<readonly number[]> => {
    const wallet = await call<Wallet>(server, 'POST', '/v1/wallets', { chain_type: 'ethereum' });
    const user = await call<{ id: string }>(server, 'POST', '/v1/users', {
      linked_accounts: [{ type: 'email', address: `${randomBytes(6).toString('hex')}@acme.example` }],
    });
    const policy = await call<{ id: string }>(server, 'POST', '/v1/policies', {
      ...{ version: '1.0', name: 'Any', chain_type: 'ethereum' },
      rules: [{ name: 'Any', method: '*', action: 'ALLOW', conditions: [] }],
    });
    const sign = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } };
    const path = `/v1/wallets/${wallet.body.id}`;
    const others = [
      await call(server, 'POST', `${path}/rpc`, sign),
      await call(server, 'PATCH', path, { policy_ids: [policy.body.id] }),
      await call(server, 'POST', `${path}/rpc`, sign),
      await call(server, 'GET', path),
      await call(server, 'GET', '/v1/wallets?limit=5'),
      await call(server, 'GET', `/v1/users/${user.body.id}`),
      await call(server, 'GET', `/v1/policies/${policy.body.id}`),
    ];
    return [wallet, user, policy, ...others].map(({ status }) => status);
  };
  const fine = Array(10).fill(200);
  await using server = await start();
  expect(await use(server)).toEqual(fine);
  await migrateToTomorrow(url);
  expect(await use(server)).toEqual(fine);
  expect((await fetch(`${server.adminUrl}/readyz`)).status).toBe(200);
  await using another = await start();
  expect(await use(another)).toEqual(fine);
});
