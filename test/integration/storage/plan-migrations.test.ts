import { Client } from 'pg';
import { expect, test } from 'vitest';
import { planMigrations } from '../../../src/admin/plan-migrations.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

async function execute(url: string, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

test('the plan has what is pending, with the sizes of the tables that wait', async () => {
  const url = await freshPostgres();
  const config = { kind: 'postgres', url } as const;
  expect(await planMigrations(config)).toEqual([]);
  await execute(
    url,
    'insert into audit_records select i, i, null, null, 0, 0 from generate_series(1, 5000) i',
    'analyze audit_records',
    "delete from schema_migrations where name >= '0019'",
  );
  const plan = await planMigrations(config);
  expect(plan.map(({ name }) => name)).toEqual(migrations.slice(18).map(({ name }) => name));
  const [takeOver] = plan;
  expect(takeOver).toMatchObject({ removes_since: null });
  expect(takeOver!.statements).toContainEqual({
    sql: 'alter table "transactions" add "claimed_by" text null',
    table: 'transactions',
    rows: 0,
    bytes: expect.any(Number),
    waits: 'reads and writes wait for a moment',
  });
  expect(takeOver!.statements[0]).toMatchObject({
    ...{ table: 'server_processes', rows: 0, bytes: 0, waits: null },
  });
  // The rows stay in the renamed table, which is read when it becomes a partition.
  const partitions = plan.find(({ name }) => name.startsWith('0023'))!.statements;
  const filled = { rows: 5_000, bytes: expect.toSatisfy((bytes: number) => bytes > 100_000) };
  const of = (part: string) => partitions.filter(({ sql }) => sql.includes(part));
  expect(of('rename constraint "audit_records_pkey"')).toMatchObject([
    { table: 'audit_records_p0', ...filled },
  ]);
  expect(of('create table "audit_records" ')).toMatchObject([{ rows: 0, bytes: 0, waits: null }]);
  expect(of('attach partition "audit_records_p0"')).toMatchObject([
    { table: 'audit_records_p0', ...filled, waits: 'reads and writes wait while the table is read' },
  ]);
});
