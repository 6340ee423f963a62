import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { jobsOf, startBesideRequests } from '../../../src/compose/jobs.ts';
import { createWebhookEndpoint } from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { ensureAuditKeys } from '../../../src/domain/base/audit/audit-keys.ts';
import { writeRecord } from '../../../src/domain/base/audit/audit-log.ts';
import { recordEvent } from '../../../src/domain/base/events/events.ts';
import { recordTransaction } from '../../../src/domain/money/transactions/record-transaction.ts';
import { FIND_DUE_WORK, findDueWork, WOKEN_IDLE_MS } from '../../../src/jobs/find-due-work.ts';
import { KEEP_PARTITIONS } from '../../../src/jobs/keep-partitions.ts';
import { type Job, startJobs } from '../../../src/jobs/runner.ts';
import { sequenceAudit } from '../../../src/jobs/sequence-audit.ts';
import { SWEEP_EXPIRED } from '../../../src/jobs/sweep-expired.ts';
import type { AuditRecord } from '../../../src/ports/audit.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { contextOf, inTransaction, services, startMs } from '../contexts.ts';

const restored = {
  wallet_id: 'w1',
  wallet_address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
  chain_type: 'ethereum',
};

const sent = {
  ...{ caip2: 'eip155:1', sender: '0x01', method: 'eth_sendTransaction', hash: '0x02' },
  ...{ signedBytes: new Uint8Array(1), isBroadcastHere: false },
};

const record: AuditRecord = {
  ...{ atMs: startMs, appId: null, by: { kind: 'operator', origin: 'command_line' }, operation: 'test' },
  ...{ decision: 'allow', ids: {} },
};

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  let nowMs: number;
  let woken: string[];
  let all: readonly Job[];
  let look: Job;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    await resetDatabase(database);
    nowMs = startMs;
    woken = [];
    const clock = { now: () => nowMs };
    const wakeSoon = (job: string): void => void woken.push(job);
    all = jobsOf({ ...services, clock }, unitsOf(database), { wakeSoon });
    look = all.find(({ name }) => name === FIND_DUE_WORK)!;
  });

  async function lookAt(atMs: number): Promise<readonly string[]> {
    nowMs = atMs;
    woken = [];
    expect(await look.run(() => undefined)).toBe(false);
    expect(look.isIdle!()).toBe(woken.length === 0);
    return woken;
  }

  const commit = (work: (context: OperationContext) => Promise<unknown>) => inTransaction(database, work);
  const execute = (statement: string) => database.orm.em.fork().execute(statement);

  test('an empty database wakes no job', async () => {
    expect(await lookAt(startMs)).toEqual([]);
  });

  test('an event that waits for its deliveries wakes their job', async () => {
    await commit(async (context) => {
      await createWebhookEndpoint(context, { url: 'https://one.example/' });
      await recordEvent(context, { appId: context.app.id, type: 'wallet.restored', payload: restored });
    });
    expect(await lookAt(startMs)).toEqual(['deliver-events']);
    await execute('update outbox_events set fanned_out_at_ms = 1');
    expect(await lookAt(startMs)).toEqual([]);
    await execute(`update webhook_endpoints set next_due_at_ms = ${startMs + 60_000}`);
    expect(await lookAt(startMs)).toEqual([]);
    // It counts what becomes due until the next look-up of an idle process.
    expect(await lookAt(startMs + 58_000)).toEqual(['deliver-events']);
    await execute("update webhook_endpoints set status = 'disabled'");
    expect(await lookAt(startMs + 60_000)).toEqual([]);
  });

  test('a transaction wakes the job that follows it once it is due', async () => {
    await commit((context) => recordTransaction({ ...context, processId: 'a' }, 'wallet-1', sent));
    expect(await lookAt(startMs)).toEqual(['follow-transactions']);
    await execute(`update transactions set next_check_at_ms = ${startMs + 10_000}`);
    expect(await lookAt(startMs)).toEqual([]);
    expect(await lookAt(startMs + 8_000)).toEqual(['follow-transactions']);
  });

  test('a record without a place, and a checkpoint without a signature, wake the job of the audit log', async () => {
    await commit((context) => ensureAuditKeys(context));
    await commit((context) => writeRecord(context, record));
    expect(await lookAt(startMs)).toEqual(['sequence-audit']);
    const units = unitsOf(database);
    const openReader = async () => (await units(false)).em;
    const job = sequenceAudit({ services, inUnit: inUnitOf(units), openReader });
    await job.run(() => undefined);
    expect(await lookAt(startMs)).toEqual([]);
    await execute('update audit_checkpoints set note = null');
    expect(await lookAt(startMs)).toEqual(['sequence-audit']);
  });

  test('a change of this process is found without waiting for the pause of an idle job', {
    retry: 2,
  }, async () => {
    const looked = Promise.withResolvers<number>();
    const followed = Promise.withResolvers<number>();
    const observe = (name: string): void => {
      if (name === FIND_DUE_WORK) looked.resolve(performance.now());
      if (name === 'follow-transactions') followed.resolve(performance.now());
    };
    const { jobs, openUnit } = startBesideRequests(services, unitsOf(database), { observe });
    try {
      // It has found nothing, so the next look-up is an idle one, after two seconds.
      const lookedMs = await looked.promise;
      await inUnitOf(openUnit)(async (em, notes) => {
        const context = { ...contextOf(em, 'acme'), notes };
        await recordTransaction(context, 'wallet-1', sent);
        await writeRecord(context, record);
      });
      expect((await followed.promise) - lookedMs).toBeLessThan(1_900);
    } finally {
      await jobs.stop();
    }
  });

  test('after an outage of the database, due work is found within a second', async () => {
    await insert('wallet_actions', { status: 'pending' });
    let isAway = true;
    const plain = inUnitOf(unitsOf(database));
    const inUnit: typeof plain = (work) =>
      isAway ? Promise.reject(new Error('the database is away')) : plain(work);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const jobs = startJobs(
        [findDueWork({ services, inUnit, wakeSoon: (job) => woken.push(job) })],
        silentLog,
      );
      await vi.advanceTimersByTimeAsync(60_000);
      isAway = false;
      await vi.advanceTimersByTimeAsync(1_000);
      vi.useRealTimers();
      // It waits for the batch that has begun, and no other begins.
      await jobs.stop();
      expect(woken).toEqual(['run-wallet-actions']);
    } finally {
      vi.useRealTimers();
    }
  });

  /** Inserts a row with these values, and with any values in its other columns that must have one. */
  async function insert(table: string, values: Readonly<Record<string, string | number>>): Promise<void> {
    const entity = [...database.orm.getMetadata().getAll().values()].find(
      ({ tableName }) => tableName === table,
    )!;
    const required = entity.props.filter(
      ({ nullable, autoincrement, default: value }) => !nullable && !autoincrement && value === undefined,
    );
    const any = required.map(({ fieldNames: [column], runtimeType: type }) => [
      column,
      type === 'number' ? 1 : type === 'string' ? 'x' : Buffer.from('x'),
    ]);
    const row = { ...Object.fromEntries(any), ...values };
    const columns = Object.keys(row);
    await database.orm.em.fork().execute(
      `insert into ${table} (${columns.map((column) => `"${column}"`).join()})
        values (${columns.map(() => '?').join()})`,
      Object.values(row),
    );
  }

  /** Rows that are due two seconds after the start, or at any time. */
  const dueMs = startMs + 2_000;
  const dueRows: readonly (readonly [
    string,
    Readonly<Record<string, string | number>>,
    readonly string[],
  ])[] = [
    ['transactions', { next_check_at_ms: dueMs }, ['follow-transactions']],
    ['wallet_action_steps', { next_check_at_ms: dueMs }, ['read-effects', 'follow-external-steps']],
    ['fiat_positions', {}, ['follow-fiat-deposits']],
    ['fiat_deposit_accounts', { next_check_at_ms: dueMs }, ['follow-fiat-deposits']],
    ['fiat_deposits', { next_check_at_ms: dueMs }, ['follow-fiat-deposits']],
    ['wallet_automation_executions', { next_run_at_ms: dueMs }, ['run-automations']],
    ['fiat_customers', { next_check_at_ms: dueMs }, ['follow-fiat-customers']],
    ['cards', { next_check_at_ms: dueMs }, ['keep-cards']],
    ['wallet_actions', { status: 'pending' }, ['run-wallet-actions']],
    ['outbox_events', {}, ['deliver-events']],
    ['webhook_endpoints', { next_due_at_ms: dueMs, status: 'enabled' }, ['deliver-events']],
    ['intents', { expires_at_ms: dueMs, status: 'pending' }, ['expire-intents']],
    ['intents', { status: 'processing' }, ['expire-intents']],
    ['audit_pending', {}, ['sequence-audit']],
    ['audit_checkpoints', {}, ['sequence-audit']],
  ];

  test.each(dueRows)('a row of %s with %o wakes %o', async (table, values, jobs) => {
    await insert(table, values);
    expect(await lookAt(startMs)).toEqual(jobs);
    const isAlwaysDue = !Object.values(values).includes(dueMs);
    expect(await lookAt(startMs - 1)).toEqual(isAlwaysDue ? jobs : []);
  });

  test('every job that sleeps until it is woken is woken, and no other', async () => {
    for (const [index, [table, values]] of dueRows.entries())
      await insert(table, { ...values, ...(table === 'intents' && { id: `intent-${index}` }) });
    const sleeping = all.filter(({ idleMs }) => idleMs === WOKEN_IDLE_MS).map(({ name }) => name);
    // These sleep as long, but tidy up after changes, which wake them.
    const expected = sleeping.filter((name) => name !== SWEEP_EXPIRED && name !== KEEP_PARTITIONS);
    expect((await lookAt(startMs)).toSorted()).toEqual(expected.toSorted());
  });
});
