import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startBesideRequests } from '../../../src/compose/jobs.ts';
import { writeRecord } from '../../../src/domain/base/audit/write-record.ts';
import { findRestore, releaseRestore } from '../../../src/domain/base/restores/restores.ts';
import { inUnitOf, unitsOf } from '../../../src/http/unit-of-work.ts';
import { type AfterPromotion, watchRestores } from '../../../src/jobs/watch-restores.ts';
import { identifyDatabase } from '../../../src/storage/schema/identify-database.ts';
import { openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { services } from '../contexts.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await openTestDatabase('postgres', { poolSize: 3 });
});
afterEach(() => database.close());

const inUnit = <T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T> =>
  inUnitOf(unitsOf(database))(work);
const execute = (sql: string) => database.orm.em.fork().execute(sql);
const again = (): void => undefined;

function watch(afterPromotion: AfterPromotion = 'hold') {
  return watchRestores({ services, inUnit, identify: identifyDatabase, afterPromotion });
}

/** A server that has used the database, and the acknowledged change of a request. */
async function runningServer() {
  const restores = watch();
  await restores.open();
  const { jobs, openUnit } = startBesideRequests(services, unitsOf(database), { restores });
  const change = (atMs: number): Promise<void> =>
    inUnitOf(openUnit)((em) =>
      writeRecord(em, {
        ...{ atMs, appId: null, by: { kind: 'operator', origin: 'command_line' }, operation: 'test' },
        ...{ decision: 'allow', ids: {} },
      }),
    );
  return { restores, jobs, change };
}

const causeOf = async () => (await inUnit(findRestore))?.cause;

/** As after a promotion, or a recovery, that this server did not see. */
const promoted = () => execute('update database_identity set timeline = timeline - 1');

test('a server that starts on another timeline holds changes until they are released', async () => {
  await watch().open();
  await promoted();
  const restores = watch();
  await restores.open();
  expect(restores.hold.reason()).toMatch(/restored from a backup/);
  expect(await causeOf()).toBe('recovered');
  // Another start does not notice it again.
  await watch().open();
  await inUnit((em) => releaseRestore(em, services.clock.now()));
  await restores.run(again);
  expect(restores.hold.reason()).toBeUndefined();
  await expect(inUnit((em) => releaseRestore(em, 0))).rejects.toThrow('no changes are held');
});

test('with `trust`, a promotion holds nothing, and a copy still does', async () => {
  await watch().open();
  await promoted();
  const trusting = watch('trust');
  await trusting.open();
  expect(trusting.hold.reason()).toBeUndefined();
  await execute("update database_identity set cluster = 'another'");
  const restores = watch('trust');
  await restores.open();
  expect(restores.hold.reason()).toBeDefined();
  expect(await causeOf()).toBe('copied');
});

test('a running server goes on after a broken connection if everything acknowledged is there', async () => {
  const { restores, jobs, change } = await runningServer();
  for (let at = 1; at <= 3; at += 1) await change(at);
  // Records that have their place in the log count too.
  await jobs.settle();
  await change(4);
  restores.doubt();
  expect(restores.hold.reason()).toMatch(/connection to the database broke/);
  await restores.run(again);
  expect(restores.hold.reason()).toBeUndefined();
  expect(await causeOf()).toBeUndefined();
  await jobs.stop();
});

test('a running server holds changes if one that it acknowledged is gone', async () => {
  const { restores, jobs, change } = await runningServer();
  await jobs.stop();
  await change(1);
  await change(2);
  await execute('delete from audit_pending where id = (select max(id) from audit_pending)');
  restores.doubt();
  await restores.run(again);
  expect(restores.hold.reason()).toMatch(/restored from a backup/);
  expect(await causeOf()).toBe('lost_changes');
});

test('while changes are held, no job runs but the one that places records', async () => {
  const { restores, jobs, change } = await runningServer();
  await inUnit((em) => em.execute(`insert into restores values ('r', 'marked', 1, null, null, 0)`));
  await restores.run(again);
  await inUnit((em) =>
    em.execute(`insert into outbox_events (id, app_id, type, payload, created_at_ms)
      values ('msg_1', 'acme', 'wallet.archived', '{}', 1)`),
  );
  await change(1);
  await jobs.settle();
  const waiting = () => execute('select 1 from outbox_events where fanned_out_at_ms is null');
  expect(await waiting()).toHaveLength(1);
  expect(await execute('select 1 from audit_pending')).toHaveLength(0);
  await inUnit((em) => releaseRestore(em, 2));
  await restores.run(again);
  await jobs.settle();
  expect(await waiting()).toHaveLength(0);
  await jobs.stop();
});
