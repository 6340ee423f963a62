import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { addCells, type CellFacts, sampled } from '../../../src/observability/gauges.ts';

test('a gauge is read at each scrape, and has no value when it cannot be read', async () => {
  const registry = new Registry();
  const readings = [
    { lagSeconds: { events: 2, transactions: 0 }, deliveries: 3 },
    undefined,
    { lagSeconds: { events: 1 }, deliveries: 0 },
  ];
  let scrapes = 0;
  addCells(registry, () => [{ cell: 'default', readBacklog: async () => readings[scrapes] }], false);
  const scrape = async (): Promise<readonly string[]> => {
    const text = await registry.metrics();
    scrapes += 1;
    return text.split('\n').filter((line) => line.startsWith('custos_'));
  };
  expect(await scrape()).toEqual([
    'custos_job_lag_seconds{work="events"} 2',
    'custos_job_lag_seconds{work="transactions"} 0',
    'custos_webhook_deliveries_pending 3',
  ]);
  expect(await scrape()).toEqual([]);
  expect(await scrape()).toEqual([
    'custos_job_lag_seconds{work="events"} 1',
    'custos_webhook_deliveries_pending 0',
  ]);
});

test('the metrics of several cells have their names, and a cell that opens later is added', async () => {
  const registry = new Registry();
  const connections = () => ({ most: 10, busy: 1, idle: 2, hung: 0, waiting: 4 });
  const readBacklog = async () => ({ lagSeconds: { events: 2 }, deliveries: 3 });
  const cells: CellFacts[] = [{ cell: 'a', connections, isHeld: () => true, readBacklog }];
  addCells(registry, () => cells, true);
  expect(await registry.metrics()).toContain('custos_changes_held{cell="a"} 1');
  cells.push({ cell: 'b', connections, isHeld: () => false, readBacklog: async () => undefined });
  const text = await registry.metrics();
  expect(text.split('\n').filter((line) => /cell="b"/.test(line))).toEqual([
    'custos_database_connections_max{cell="b"} 10',
    'custos_database_connections{cell="b",state="busy"} 1',
    'custos_database_connections{cell="b",state="idle"} 2',
    'custos_database_connections{cell="b",state="hung"} 0',
    'custos_database_waiting{cell="b"} 4',
    'custos_changes_held{cell="b"} 0',
  ]);
  expect(text).toContain('custos_job_lag_seconds{cell="a",work="events"} 2');
});

test('readings are shared by scrapes, and one that takes too long or fails is absent', async () => {
  let readings = 0;
  const read = async (): Promise<number> => {
    readings += 1;
    return readings;
  };
  const onFailure = () => undefined;
  const shared = sampled({ read, everyMs: 60_000, waitMs: 1_000, onFailure });
  expect(await Promise.all([shared(), shared()])).toEqual([1, 1]);
  expect(await shared()).toBe(1);

  const stuck = sampled({ read: () => new Promise<number>(() => {}), everyMs: 0, waitMs: 5, onFailure });
  expect(await stuck()).toBeUndefined();

  const failures: unknown[] = [];
  const broken = sampled({
    read: () => Promise.reject(new Error('gone')),
    everyMs: 60_000,
    waitMs: 1_000,
    onFailure: (error) => failures.push(error),
  });
  expect([await broken(), await broken()]).toEqual([undefined, undefined]);
  expect(failures).toEqual([new Error('gone')]);
});
