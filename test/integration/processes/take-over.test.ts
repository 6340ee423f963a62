import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { claimEndpoints } from '../../../src/domain/access/webhooks/fan-out-events.ts';
import { createWebhookEndpoint } from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { claimDueTransactions } from '../../../src/domain/money/transactions/claim-transactions.ts';
import { advanceTransaction } from '../../../src/domain/money/transactions/follow-transaction.ts';
import { claimTransfers } from '../../../src/domain/money/transactions/record-funds.ts';
import { recordTransaction } from '../../../src/domain/money/transactions/record-transaction.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { claimedEndpoint } from '../../../src/jobs/claimed-endpoint.ts';
import { type Heartbeat, heartbeat } from '../../../src/jobs/heartbeat.ts';
import type { UnitWork } from '../../../src/ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { contextOf, inTransaction, services, startMs } from '../contexts.ts';

const caip2 = 'eip155:1';

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  /** Of the machine; the clock of the domain stands still, so that no claim expires by itself. */
  let machineMs: number;
  let isReachable: boolean;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    await resetDatabase(database);
    [machineMs, isReachable] = [startMs, true];
  });

  const inUnit = <T>(work: UnitWork<T>): Promise<T> => {
    if (!isReachable) return Promise.reject(new Error('the database cannot be reached'));
    return inUnitOf(unitsOf(database))(work);
  };
  const processCalled = (processId: string): Heartbeat =>
    heartbeat({ services: { ...services, processId, machine: { now: () => machineMs } }, inUnit });

  /** A round of each process, a second after the last. */
  async function rounds(count: number, ...processes: readonly Heartbeat[]): Promise<void> {
    for (let round = 0; round < count; round += 1) {
      machineMs += 1_000;
      for (const each of processes) await each.run(() => undefined).catch(() => undefined);
    }
  }

  const claimant = (owner: string) => ({ owner, nowMs: startMs });
  const claimChain = (owner: string) =>
    inUnit((em) => claimTransfers(em, { ...claimant(owner), caip2, leaseMs: 60_000 }));
  const claimSent = (owner: string) =>
    inUnit((em) => claimDueTransactions(em, claimant(owner), { limit: 10 }));
  const claimWaiting = (owner: string) => inUnit((em) => claimEndpoints(em, claimant(owner), [], 10));

  /** A transaction that its request broadcasts itself, an endpoint with deliveries and a chain, all claimed by `a`. */
  async function claimAll(): Promise<{ endpointId: string }> {
    const endpointId = await inTransaction(database, async (context) => {
      const { endpoint } = await createWebhookEndpoint(context, { url: 'https://one.example/' });
      await recordTransaction({ ...context, processId: 'a' }, 'wallet-1', {
        ...{ caip2, sender: '0x01', method: 'eth_sendTransaction', hash: '0x02' },
        ...{ signedBytes: new Uint8Array(1), isBroadcastHere: true },
      });
      await context.em
        .getKysely<Tables>()
        .updateTable('webhook_endpoints')
        .set({ next_due_at_ms: 0 })
        .execute();
      return endpoint.id;
    });
    expect(await claimWaiting('a')).toEqual([endpointId]);
    expect(await claimChain('a')).toBeDefined();
    return { endpointId };
  }

  const claimedByAnother = async (owner: string): Promise<readonly boolean[]> => [
    (await claimWaiting(owner)).length > 0,
    (await claimSent(owner)).length > 0,
    (await claimChain(owner)) !== undefined,
  ];
  const nothing = [false, false, false];
  const everything = [true, true, true];

  test('another process takes over the work of one that was killed, after five seconds', async () => {
    const [a, b] = [processCalled('a'), processCalled('b')];
    await claimAll();
    await rounds(3, a, b);
    // `a` is killed.
    await rounds(4, b);
    expect(await claimedByAnother('b')).toEqual(nothing);
    await rounds(1, b);
    expect(await claimedByAnother('b')).toEqual(everything);
  });

  test('a process that is slow, but alive, keeps its work for any time', async () => {
    const [a, b] = [processCalled('a'), processCalled('b')];
    await claimAll();
    for (let minute = 0; minute < 5; minute += 1) {
      await rounds(4, b);
      await rounds(1, a, b);
    }
    expect(await claimedByAnother('b')).toEqual(nothing);
  });

  test('after the database was away, every process has time to come back', async () => {
    const [a, b] = [processCalled('a'), processCalled('b')];
    await claimAll();
    await rounds(3, a, b);
    isReachable = false;
    await rounds(100, a, b);
    isReachable = true;
    await rounds(4, b);
    await rounds(4, a, b);
    expect(await claimedByAnother('b')).toEqual(nothing);
  });

  test('rounds in quick succession count as one', async () => {
    const [a, b] = [processCalled('a'), processCalled('b')];
    await claimAll();
    await rounds(1, a, b);
    for (let round = 0; round < 20; round += 1) await b.run(() => undefined);
    expect(await claimedByAnother('b')).toEqual(nothing);
  });

  test('a process that leaves releases its work at once', async () => {
    const a = processCalled('a');
    await claimAll();
    await rounds(1, a);
    await a.leave();
    expect(await claimedByAnother('b')).toEqual(everything);
  });

  test('a process that stood still stores nothing and sends nothing of what it has lost', async () => {
    const [a, b] = [processCalled('a'), processCalled('b')];
    const { endpointId } = await claimAll();
    await inUnit((em) =>
      em.getKysely<Tables>().updateTable('transactions').set({ next_check_at_ms: 0 }).execute(),
    );
    const [transaction] = await claimSent('a');
    const endpoint = claimedEndpoint(endpointId, {
      ...{ services: { ...services, processId: 'a' }, inUnit, alive: a },
    });
    await rounds(1, a, b);
    expect(await endpoint.target()).toMatchObject({ url: 'https://one.example/' });
    await rounds(5, b);
    // `a` goes on before its next round.
    expect(await endpoint.target()).toBeUndefined();
    const finding = { status: 'broadcasted', isSettled: false } as const;
    const store = () =>
      inUnit((em) => advanceTransaction({ ...contextOf(em, 'acme'), em }, transaction!, finding));
    expect(await store()).toBe(false);
    expect(await claimedByAnother('b')).toEqual(everything);
    // From here on it works again, with new claims only.
    await rounds(10, a, b);
    expect(await endpoint.target()).toBeUndefined();
  });

  test('every table with claims is released', async () => {
    const a = processCalled('a');
    const tables = [...database.orm.getMetadata().getAll().values()];
    const claiming = tables.filter(({ properties }) => 'claimedBy' in properties);
    expect(claiming.map(({ tableName }) => tableName).sort()).toEqual([
      'chain_positions',
      'fiat_customers',
      'intents',
      'transactions',
      'wallet_action_steps',
      'wallet_automation_executions',
    ]);
    // `test/integration/intents/after-commit.test.ts` has the intents.
    const due = claiming.filter(({ tableName }) => tableName !== 'intents');
    await inUnit(async (em) => {
      for (const { tableName, properties } of due) {
        const values = Object.values(properties).map((property) => {
          const name = property.fieldNames[0]!;
          if (name === 'claimed_by') return [name, 'a'];
          if (/^(next_|leased_)/.test(name)) return [name, startMs + 60_000];
          const isText = property.columnTypes[0] === 'text';
          return [
            name,
            property.columnTypes[0] === 'bytea' || property.columnTypes[0] === 'blob'
              ? Buffer.of(1)
              : isText
                ? 'x'
                : 1,
          ];
        });
        await em
          .getKysely<Record<string, Record<string, unknown>>>()
          .insertInto(tableName)
          .values(Object.fromEntries(values))
          .execute();
      }
    });
    await rounds(1, a);
    await a.leave();
    const left = await inUnit((em) =>
      Promise.all(
        due.map(async ({ tableName, properties }) => {
          const column = Object.values(properties).find(({ fieldNames }) =>
            /^(next_|leased_)/.test(fieldNames[0]!),
          )!;
          const [row] = await em.execute<Record<string, number>[]>(`select * from ${tableName}`);
          return row![column.fieldNames[0]!]! <= startMs ? 'due' : tableName;
        }),
      ),
    );
    expect(left).toEqual(due.map(() => 'due'));
  });
});
