import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { jobsOf, startBesideRequests } from '../../../src/compose/jobs.ts';
import { createWebhookEndpoint } from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { ensureAuditKeys } from '../../../src/domain/base/audit/audit-keys.ts';
import { writeRecord } from '../../../src/domain/base/audit/audit-log.ts';
import { recordEvent } from '../../../src/domain/base/events/events.ts';
import { recordTransaction } from '../../../src/domain/money/transactions/record-transaction.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { FIND_DUE_WORK } from '../../../src/jobs/find-due-work.ts';
import type { Job } from '../../../src/jobs/runner.ts';
import { sequenceAudit } from '../../../src/jobs/sequence-audit.ts';
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

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  let nowMs: number;
  let woken: string[];
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
    look = jobsOf({ ...services, clock }, unitsOf(database), { wakeSoon }).find(
      ({ name }) => name === FIND_DUE_WORK,
    )!;
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
    await commit((context) =>
      recordTransaction({ ...context, processId: 'a' }, 'wallet-1', {
        ...{ caip2: 'eip155:1', sender: '0x01', method: 'eth_sendTransaction', hash: '0x02' },
        ...{ signedBytes: new Uint8Array(1), isBroadcastHere: false },
      }),
    );
    expect(await lookAt(startMs)).toEqual(['follow-transactions']);
    await execute(`update transactions set next_check_at_ms = ${startMs + 10_000}`);
    expect(await lookAt(startMs)).toEqual([]);
    expect(await lookAt(startMs + 8_000)).toEqual(['follow-transactions']);
  });

  test('a record without a place, and a checkpoint without a signature, wake the job of the audit log', async () => {
    await commit((context) => ensureAuditKeys(context));
    await commit((context) =>
      writeRecord(context, {
        ...{
          atMs: startMs,
          appId: null,
          by: { kind: 'operator', origin: 'command_line' },
          operation: 'test',
        },
        ...{ decision: 'allow', ids: {} },
      }),
    );
    expect(await lookAt(startMs)).toEqual(['sequence-audit']);
    const units = unitsOf(database);
    const openReader = async () => (await units(false)).em;
    const job = sequenceAudit({ services, inUnit: inUnitOf(units), openReader });
    await job.run(() => undefined);
    expect(await lookAt(startMs)).toEqual([]);
    await execute('update audit_checkpoints set note = null');
    expect(await lookAt(startMs)).toEqual(['sequence-audit']);
  });

  test('a change of this process is found without waiting for the pause of an idle job', async () => {
    const { jobs, openUnit } = startBesideRequests(services, unitsOf(database));
    try {
      // The first batches of all jobs have found nothing, so that they are idle.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      const changedMs = performance.now();
      await inUnitOf(openUnit)(async (em, notes) => {
        const context = { ...contextOf(em, 'acme'), notes };
        await createWebhookEndpoint(context, { url: 'https://one.example/' });
        await recordEvent(context, { appId: 'acme', type: 'wallet.restored', payload: restored });
      });
      const isFannedOut = async (): Promise<boolean> => {
        const events = await database.orm.em
          .fork()
          .getKysely<Tables>()
          .selectFrom('outbox_events')
          .select('fanned_out_at_ms')
          .execute();
        return events.every(({ fanned_out_at_ms: atMs }) => atMs !== null);
      };
      while (!(await isFannedOut())) await new Promise((resolve) => setTimeout(resolve, 20));
      expect(performance.now() - changedMs).toBeLessThan(1_000);
    } finally {
      await jobs.stop();
    }
  });
});
