import type { SqlEntityManager } from '@mikro-orm/sql';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepPartitions } from '../../../src/jobs/keep-partitions.ts';
import { sweepExpired } from '../../../src/jobs/sweep-expired.ts';
import { createNotes, type UnitWork } from '../../../src/ports/operation-context.ts';
import { partitionsOf } from '../../../src/storage/schema/partitions.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** What the migration leaves to the first partition of an empty table. */
const FIRST = 102_656;

let world: TestOperations;
beforeEach(async () => {
  world = await openOperations('postgres', { poolSize: 3 });
});
afterEach(() => world[Symbol.asyncDispose]());

const fork = () => world.database.orm.em.fork();
const inUnit = <T>(work: UnitWork<T>): Promise<T> =>
  fork().transactional((em) => work(em as SqlEntityManager, createNotes()));
const keep = () => keepPartitions({ services: world.services, inUnit }).run(() => undefined);
const sweep = () => sweepExpired({ services: world.services, inUnit }).run(() => undefined);
const rangesOf = async (table: string) =>
  (await partitionsOf(fork(), table)).map(({ from, to }) => [from, to]);
const keysOf = async (table: string, key: string): Promise<number[]> =>
  (await fork().execute<{ key: string }[]>(`select ${key} as key from ${table} order by 1`)).map(
    ({ key: each }) => Number(each),
  );

const addUse = (sequence: number, agoMs: number) =>
  fork().execute(
    "insert into wallet_uses (sequence, app_id, wallet_id, operation, method, request_id, judged_at_ms, decision, policy_ids) values (?, 'a', 'w', 'walletRpc', 'personal_sign', 'r', ?, 'allowed', '[]')",
    [sequence, world.clock.nowMs - agoMs],
  );
const addEvent = (sequence: number, agoMs: number, fannedOutAtMs: number | null = 1) =>
  fork().execute(
    "insert into outbox_events (sequence, id, app_id, type, payload, created_at_ms, fanned_out_at_ms) values (?, ?, 'a', 'wallet.archived', '{}', ?, ?)",
    [sequence, `msg_${sequence}`, world.clock.nowMs - agoMs, fannedOutAtMs],
  );
const addDelivery = (sequence: number, finishedAgoMs: number | null) =>
  fork().execute(
    "insert into webhook_deliveries (id, endpoint_id, event_sequence, event_id, event_type, status, failures, attempt_count, attempts, next_attempt_at_ms, created_at_ms, finished_at_ms) values (?, 'e', ?, 'm', 'wallet.archived', 'delivered', 0, 1, '[]', ?, 1, ?)",
    [
      ...[`delivery${sequence}`, sequence, finishedAgoMs === null ? 1 : null],
      finishedAgoMs === null ? null : world.clock.nowMs - finishedAgoMs,
    ],
  );

test('ranges are added ahead of the rows, about a week of them each', async () => {
  expect(await rangesOf('wallet_uses')).toEqual([[null, FIRST]]);
  await keep();
  expect(await rangesOf('wallet_uses')).toEqual([[null, FIRST]]);
  await addUse(1, 14 * DAY_MS);
  await addUse(1_000_000, 7 * DAY_MS);
  // No range covers it, so it is in the default partition, and the next one begins behind it.
  await keep();
  const ranges = await rangesOf('wallet_uses');
  expect(ranges).toHaveLength(2);
  const [from, to] = ranges[1] as [number, number];
  expect([from % 256, to % 256]).toEqual([0, 0]);
  expect(from).toBeGreaterThan(1_000_000);
  expect(from).toBeLessThan(1_000_300);
  expect(to - from).toBeGreaterThan(999_000);
  expect(to - from).toBeLessThan(1_001_000);
  await keep();
  expect(await rangesOf('wallet_uses')).toHaveLength(2);
  expect(await keysOf('wallet_uses', 'sequence')).toEqual([1, 1_000_000]);
});

test('uses are dropped with their partition once all of it have expired, and one by one a week later', async () => {
  await addUse(1, 40 * DAY_MS);
  await addUse(2, 31 * DAY_MS);
  await keep();
  await addUse(FIRST, 29 * DAY_MS);
  // The newest use of the partition is younger than a month, so the oldest is deleted alone.
  await sweep();
  expect(await keysOf('wallet_uses', 'sequence')).toEqual([2, FIRST]);
  await keep();
  expect(await keysOf('wallet_uses', 'sequence')).toEqual([FIRST]);
  expect((await rangesOf('wallet_uses'))[0]?.[0]).toBe(FIRST);
});

test('events are kept while they are not delivered, and for a month', async () => {
  await addEvent(1, 40 * DAY_MS);
  await addDelivery(1, null);
  await keep();
  await addEvent(FIRST, 1);
  await addDelivery(FIRST, 1);
  await keep();
  expect(await keysOf('webhook_deliveries', 'event_sequence')).toEqual([1, FIRST]);
  expect(await keysOf('outbox_events', 'sequence')).toEqual([1, FIRST]);
  await fork().execute('update webhook_deliveries set next_attempt_at_ms = null, finished_at_ms = 1');
  await keep();
  expect(await keysOf('webhook_deliveries', 'event_sequence')).toEqual([FIRST]);
  expect(await keysOf('outbox_events', 'sequence')).toEqual([FIRST]);
  await addEvent(FIRST + 1, 1, null);
  expect(await keysOf('outbox_events', 'sequence')).toEqual([FIRST, FIRST + 1]);
});

test('a table that is in use is left to the next run', async () => {
  await addUse(1, 40 * DAY_MS);
  await keep();
  await addUse(FIRST, 1);
  const reader = new Client({ connectionString: world.database.url });
  await reader.connect();
  await reader.query('begin');
  await reader.query('select count(*) from wallet_uses');
  // It ends although the reader does not.
  await keep();
  expect(await keysOf('wallet_uses', 'sequence')).toEqual([1, FIRST]);
  await reader.end();
  await keep();
  expect(await keysOf('wallet_uses', 'sequence')).toEqual([FIRST]);
});
