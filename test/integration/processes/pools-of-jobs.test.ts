import { Client } from 'pg';
import { expect, test } from 'vitest';
import { startBesideRequests } from '../../../src/compose/jobs.ts';
import { entities } from '../../../src/domain/tables.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { services } from '../contexts.ts';

test('jobs whose statements all hang take no connection from requests', async () => {
  const url = await freshPostgres();
  const open = () => openDatabase(entities, { kind: 'postgres', url, poolSize: 2 });
  const [ofRequests, ofJobs] = [await open(), await open()];
  const holder = new Client({ connectionString: url });
  await holder.connect();
  const { rows } = await holder.query<{ name: string }>(
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public' and table_name <> 'apps'",
  );
  await holder.query(`begin; lock table ${rows.map(({ name }) => name).join(', ')} in access exclusive mode`);
  const { jobs, openUnit } = startBesideRequests(services, unitsOf(ofRequests), {
    jobUnits: unitsOf(ofJobs),
  });
  try {
    for (const job of ['follow-transactions', 'run-wallet-actions', 'deliver-events', 'expire-intents'])
      jobs.wake(job);
    await expect.poll(() => ofJobs.connections?.().busy).toBe(2);
    expect(ofRequests.connections?.().busy).toBe(0);
    const read = () => inUnitOf(openUnit)((em) => em.execute<object[]>('select count(*) from apps'));
    const answers = await Promise.all(Array.from({ length: 20 }, read));
    expect(answers.every((rowsOfApps) => rowsOfApps.length === 1)).toBe(true);
    // All of that while the jobs hang.
    expect(ofJobs.connections?.().busy).toBe(2);
  } finally {
    await holder.query('rollback');
    await holder.end();
    await jobs.stop();
    await Promise.all([ofRequests.close(), ofJobs.close()]);
  }
});
