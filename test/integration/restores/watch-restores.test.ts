import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkpointFile } from '../../../src/adapters/checkpoint-file.ts';
import { startBesideRequests } from '../../../src/compose/jobs.ts';
import { ensureAuditKeys } from '../../../src/domain/base/audit/audit-keys.ts';
import { writeRecord } from '../../../src/domain/base/audit/audit-log.ts';
import { getSignedCheckpoint } from '../../../src/domain/base/audit/audit-tree.ts';
import { findRestore, releaseRestore } from '../../../src/domain/base/restores/restores.ts';
import { sequenceAudit } from '../../../src/jobs/sequence-audit.ts';
import { type AfterPromotion, watchRestores } from '../../../src/jobs/watch-restores.ts';
import type { CheckpointKeeper } from '../../../src/ports/audit.ts';
import type { UnitWork } from '../../../src/ports/operation-context.ts';
import { committingUnlessFrozen, inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { identifyDatabase } from '../../../src/storage/schema/identify-database.ts';
import { openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { services } from '../contexts.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await openTestDatabase('postgres', { poolSize: 3 });
});
afterEach(() => database.close());

const inUnit = <T>(work: UnitWork<T>): Promise<T> => inUnitOf(unitsOf(database))(work);
const execute = (sql: string) => database.orm.em.fork().execute(sql);
const again = (): void => undefined;

function watch(afterPromotion: AfterPromotion = 'hold', keeper?: CheckpointKeeper) {
  return watchRestores({ services, inUnit, identify: identifyDatabase, afterPromotion, keeper });
}

/** A server that has used the database, and the acknowledged change of a request. */
async function runningServer(keeper?: CheckpointKeeper) {
  const restores = watch('hold', keeper);
  await restores.open();
  const { jobs, openUnit } = startBesideRequests(services, unitsOf(database), { restores });
  const change = (atMs: number): Promise<void> =>
    inUnitOf(openUnit)((em, notes) =>
      writeRecord(
        { em, notes },
        {
          ...{ atMs, appId: null, by: { kind: 'operator', origin: 'command_line' }, operation: 'test' },
          ...{ decision: 'allow', ids: {} },
        },
      ),
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
  expect(restores.freeze.reason()).toMatch(/restored from a backup/);
  expect(await causeOf()).toBe('recovered');
  // Another start does not notice it again.
  await watch().open();
  await inUnit((em) => releaseRestore(em, services.clock.now()));
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
  await expect(inUnit((em) => releaseRestore(em, 0))).rejects.toThrow('no changes are held');
});

test('with `trust`, a promotion holds nothing, and a copy still does', async () => {
  await watch().open();
  await promoted();
  const trusting = watch('trust');
  await trusting.open();
  expect(trusting.freeze.reason()).toBeUndefined();
  await execute("update database_identity set cluster = 'another'");
  const restores = watch('trust');
  await restores.open();
  expect(restores.freeze.reason()).toBeDefined();
  expect(await causeOf()).toBe('copied');
});

test.each([
  ['a move holds nothing', { timeline: 3, hasTarget: false }, undefined],
  ['a move after a recovery to a point in time is held', { timeline: 3, hasTarget: true }, 'recovered'],
  ['a move on the same timelines is not held', { timeline: 2, hasTarget: true }, undefined],
] as const)('a server that starts after a move within a cluster: %s', async (_, after, cause) => {
  const starting = (cluster: string, identity: { timeline: number; hasTarget: boolean }) =>
    watchRestores({
      ...{ services, inUnit, afterPromotion: 'hold' },
      identify: async () => ({ cluster, ...identity, startedAt: 'now' }),
    });
  await starting('1/2/3 1=7001', { timeline: 2, hasTarget: false }).open();
  await starting('1/2/3 2=7002', after).open();
  expect(await causeOf()).toBe(cause);
});

test('a running server goes on after a broken connection if everything acknowledged is there', async () => {
  const { restores, jobs, change } = await runningServer();
  for (let at = 1; at <= 3; at += 1) await change(at);
  // Records that have their place in the log count too.
  await jobs.settle();
  await change(4);
  restores.doubt();
  expect(restores.freeze.reason()).toMatch(/connection to the database broke/);
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
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
  expect(restores.freeze.reason()).toMatch(/restored from a backup/);
  expect(await causeOf()).toBe('lost_changes');
});

test('a change that was under way when a doubt came is not committed before the database was checked', async () => {
  const { restores, jobs } = await runningServer();
  await jobs.stop();
  const openUnit = committingUnlessFrozen(unitsOf(database), restores.freeze);
  const add = (name: string) =>
    inUnitOf(openUnit)(async (em) => {
      await em.execute(
        `insert into restores (id, cause, noticed_at_ms, released_at_ms) values ('${name}', 'marked', 0, 0)`,
      );
      if (name === 'doubtful') restores.doubt();
    });
  await expect(add('doubtful')).rejects.toMatchObject({ code: 'unavailable', status: 503 });
  await restores.run(again);
  await add('certain');
  expect(await execute('select id from restores')).toEqual([{ id: 'certain' }]);
});

test('changes that are acknowledged during the look are not missed', async () => {
  const { restores, jobs, change } = await runningServer();
  await jobs.stop();
  let isDone = false;
  const changing = (async () => {
    for (let at = 1; !isDone; at += 1) await change(at);
  })();
  for (let looks = 0; looks < 20; looks += 1) {
    restores.doubt();
    await restores.run(again);
  }
  isDone = true;
  await changing;
  expect(await causeOf()).toBeUndefined();
});

/** Records of other servers, with a place in the log or waiting for one. */
const busyBeside = async (count: number) => {
  await execute(`insert into audit_pending (recorded_at_ms, entry)
    select 1, '{"n":' || n || '}' from generate_series(1, ${count}) n`);
};

test('an idle server beside a busy one misses nothing, and neither does one beside a late sequencer', async () => {
  const { restores, jobs, change } = await runningServer();
  await change(1);
  await change(2);
  await jobs.settle();
  await jobs.stop();
  await change(3);
  await execute(`insert into audit_records (leaf_index, pending_id, recorded_at_ms, entry)
    select n, -n, 1, '{}' from generate_series(1000, 61000) n`);
  await execute('update audit_pending set id = id');
  restores.doubt();
  await restores.run(again);
  expect(await causeOf()).toBeUndefined();
  await busyBeside(60_000);
  restores.doubt();
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
});

test('records that were trimmed are not missed, whether the server has seen their places or not', async () => {
  const { restores, jobs, change } = await runningServer();
  await change(1);
  await jobs.settle();
  await restores.run(again);
  await change(2);
  await jobs.settle();
  await jobs.stop();
  await execute('delete from audit_records');
  restores.doubt();
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
  // What was acknowledged afterwards is missed all the same.
  await change(3);
  await execute('delete from audit_pending');
  restores.doubt();
  await restores.run(again);
  expect(await causeOf()).toBe('lost_changes');
});

test('a lost change is missed however many were acknowledged after it', async () => {
  const { restores, jobs, change } = await runningServer();
  await jobs.stop();
  for (let at = 1; at <= 8; at += 1) await change(at);
  await inUnit(async (em, notes) => {
    const record = { appId: null, by: { kind: 'job', job: 'test' }, operation: 'test', ids: {} } as const;
    for (let at = 10; at < 2_500; at += 1) {
      await writeRecord({ em, notes }, { ...record, atMs: at, decision: 'allow' });
      restores.acknowledge(notes);
    }
  });
  // Another database took over without a broken connection: the last ones of the old one are gone.
  await execute('delete from audit_pending where recorded_at_ms < 10');
  restores.doubt();
  await restores.run(again);
  expect(await causeOf()).toBe('lost_changes');
});

/** As on a replica that was promoted before the last batch of the sequencer reached it. */
async function losePlaces(): Promise<void> {
  await execute(
    `insert into audit_pending select pending_id, app_id, origin, recorded_at_ms, entry from audit_records`,
  );
  for (const table of ['records', 'tiles', 'checkpoints']) await execute(`delete from audit_${table}`);
}

test('a failover that lost only the places of records is no loss', async () => {
  const { restores, jobs, change } = await runningServer();
  for (let at = 1; at <= 3; at += 1) await change(at);
  await jobs.settle();
  await restores.run(again);
  await losePlaces();
  await change(4);
  restores.doubt();
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
  await jobs.settle();
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
  await jobs.stop();
});

test.each([
  ['shorter', 'delete from audit_pending where recorded_at_ms > 2'],
  ['another one', `update audit_pending set entry = '{}' where recorded_at_ms = 2`],
])('a running server notices by itself that the log became %s', async (_, harm) => {
  const { restores, jobs, change } = await runningServer();
  for (let at = 1; at <= 3; at += 1) await change(at);
  await jobs.settle();
  await restores.run(again);
  await losePlaces();
  await execute(harm);
  await jobs.settle();
  await restores.run(again);
  expect(await causeOf()).toBe('lost_changes');
  expect(restores.freeze.reason()).toMatch(/restored from a backup/);
  await jobs.stop();
});

test('what is missing is held once, by whichever server notices it', async () => {
  const { restores, jobs, change } = await runningServer();
  const other = watch();
  await other.open();
  await change(1);
  await jobs.settle();
  await jobs.stop();
  await restores.run(again);
  await other.run(again);
  for (const table of ['records', 'tiles', 'checkpoints']) await execute(`delete from audit_${table}`);
  await restores.run(again);
  await inUnit((em) => releaseRestore(em, 1));
  for (const each of [other, restores]) {
    each.doubt();
    await each.run(again);
    expect(each.freeze.reason()).toBeUndefined();
  }
  // The release is not forgotten either.
  await execute('delete from restores');
  await other.run(again);
  expect(other.freeze.reason()).toMatch(/restored from a backup/);
});

describe('with a file that keeps the last checkpoint', () => {
  let folder: string;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'custos-checkpoint-'));
    const { keyStore, entropy } = services;
    await ensureAuditKeys({ em: database.orm.em.fork(), keyStore, entropy, inUnit });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const keeper = () => checkpointFile(join(folder, 'checkpoint'));

  /** A server that has kept its checkpoint and stopped. */
  async function stoppedServer(changes: number): Promise<void> {
    const { restores, jobs, change } = await runningServer(keeper());
    for (let at = 1; at <= changes; at += 1) await change(at);
    await jobs.settle();
    await restores.run(again);
    await jobs.stop();
  }

  test('a server that starts goes on if the log continues it, also after a trim', async () => {
    await stoppedServer(3);
    await execute('delete from audit_records');
    await stoppedServer(2);
    expect(await causeOf()).toBeUndefined();
    expect(readdirSync(folder)).toEqual(['checkpoint']);
  });

  test.each([
    ['was cut', ['records', 'tiles', 'checkpoints'].map((table) => `delete from audit_${table}`)],
    ['has another key', [`update audit_keys set public_key = '${Buffer.alloc(32).toString('base64')}'`]],
    ['has another root', [`update audit_checkpoints set root = '${Buffer.alloc(32).toString('base64')}'`]],
  ])('a server that starts holds changes if the log %s, once', async (_, harm) => {
    await stoppedServer(3);
    for (const statement of harm) await execute(statement);
    const starting = watch('hold', keeper());
    await starting.open();
    expect(starting.freeze.reason()).toMatch(/restored from a backup/);
    expect(await causeOf()).toBe('lost_changes');
    await inUnit((em) => releaseRestore(em, services.clock.now()));
    await starting.run(again);
    expect(starting.freeze.reason()).toBeUndefined();
    const next = watch('hold', keeper());
    await next.open();
    expect(next.freeze.reason()).toBeUndefined();
  });

  test('what was kept before a restore stays beside the file', async () => {
    await stoppedServer(3);
    for (const table of ['records', 'tiles', 'checkpoints']) await execute(`delete from audit_${table}`);
    await watch('hold', keeper()).open();
    await inUnit((em) => releaseRestore(em, services.clock.now()));
    await stoppedServer(1);
    expect(readdirSync(folder).sort()).toEqual([
      'checkpoint',
      expect.stringMatching(/^checkpoint\.before-\d+$/),
    ]);
    // The release is not forgotten: without it in the database, changes are held again.
    await execute('delete from restores');
    const starting = watch('hold', keeper());
    await starting.open();
    expect(starting.freeze.reason()).toMatch(/restored from a backup/);
  });

  test('a file that cannot be read or written stops nothing', async () => {
    await stoppedServer(1);
    writeFileSync(join(folder, 'checkpoint'), '{');
    const starting = watch('hold', keeper());
    await starting.open();
    expect(starting.freeze.reason()).toBeUndefined();
    const absent = watch('hold', checkpointFile(join(folder, 'absent', 'checkpoint')));
    await absent.open();
    expect(absent.freeze.reason()).toBeUndefined();
  });
});

test('a job that slept while a restore was noticed and released signs the shorter log', async () => {
  const { keyStore, entropy } = services;
  await ensureAuditKeys({ em: database.orm.em.fork(), keyStore, entropy, inUnit });
  const { restores, jobs, change } = await runningServer();
  await jobs.stop();
  const openReader = async () => (await unitsOf(database)(false)).em;
  const job = sequenceAudit({ services, inUnit, openReader, freeze: restores.freeze });
  await change(1);
  await change(2);
  await job.run(again);
  await restores.run(again);
  expect(await inUnit(getSignedCheckpoint)).toContain('\n2\n');
  for (const table of ['records', 'tiles', 'checkpoints']) await execute(`delete from audit_${table}`);
  await restores.run(again);
  expect(restores.freeze.reason()).toMatch(/restored from a backup/);
  expect(await causeOf()).toBe('lost_changes');
  await inUnit((em) => releaseRestore(em, services.clock.now()));
  await restores.run(again);
  expect(restores.freeze.reason()).toBeUndefined();
  await change(3);
  await job.run(again);
  expect(await inUnit(getSignedCheckpoint)).toContain('\n1\n');
  // Without a restore, a shorter log is still refused.
  for (const table of ['records', 'tiles', 'checkpoints']) await execute(`delete from audit_${table}`);
  await expect(job.run(again)).rejects.toThrow('were changed in the database');
});

test('before the first look, nothing runs', async () => {
  expect(watch().freeze.reason()).toBeDefined();
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
