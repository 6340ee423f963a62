import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { administerApps, migrateDatabase } from '../../../src/admin/administration.ts';
import { exportLog } from '../../../src/admin/audit/export-log.ts';
import { planMigrations } from '../../../src/admin/plan-migrations.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { startProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

/** A database whose connections have one schema. */
async function inSchema(schema: string): Promise<string> {
  const url = new URL(await freshPostgres());
  const client = new Client({ connectionString: url.href });
  await client.connect();
  await client.query(`create schema ${schema}`);
  await client.end();
  url.searchParams.set('options', `-c search_path=${schema.replaceAll(/[\\ ]/g, '\\$&')}`);
  return url.href;
}

const ranAll = migrations.map(({ name }) => name);

test.each(['custos', '"Acme.Wallets 2"'])('everything works in the schema %s', async (schema) => {
  const url = await inSchema(schema);
  const config = { kind: 'postgres', url } as const;
  expect(await migrateDatabase(config, { dryRun: true })).toEqual(ranAll);
  expect(await migrateDatabase(config, { dryRun: false })).toEqual(ranAll);
  expect(await migrateDatabase(config, { dryRun: false })).toEqual([]);
  expect(await migrateDatabase(config, { dryRun: true })).toEqual([]);
  expect(await planMigrations(config)).toEqual([]);
  const app = await administerApps(config).createApp('Globex');
  await using server = await startProduction({ DATABASE_URL: url });
  const response = await fetch(`${server.baseUrl}/v1/wallets`, {
    method: 'POST',
    headers: {
      ...server.proxied,
      'service-app-id': app.id,
      authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
      'content-type': 'application/json',
    },
    body: '{"chain_type":"ethereum"}',
  });
  expect(response.status).toBe(200);
  const ready = await fetch(`${server.adminUrl}/readyz`);
  expect(ready.status).toBe(200);
  const folder = join(mkdtempSync(join(tmpdir(), 'custos-schema-')), 'audit');
  await expect.poll(() => exportLog(config, folder).catch(() => undefined)).toMatchObject({ from: 0 });
  rmSync(dirname(folder), { recursive: true });
});

test('a schema that does not exist is named before anything is made', async () => {
  const url = new URL(await freshPostgres());
  url.searchParams.set('options', '-c search_path=absent');
  await expect(migrateDatabase({ kind: 'postgres', url: url.href }, { dryRun: false })).rejects.toThrow(
    'no schema of the `search_path` exists',
  );
});
