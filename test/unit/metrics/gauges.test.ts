import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { addBacklog, sampled } from '../../../src/observability/gauges.ts';

test('a gauge is read at each scrape, and has no value when it cannot be read', async () => {
  const registry = new Registry();
  const readings = [
    { lagSeconds: { events: 2, transactions: 0 }, deliveries: 3 },
    undefined,
    { lagSeconds: { events: 1 }, deliveries: 0 },
  ];
  let scrapes = 0;
  addBacklog(registry, async () => readings[scrapes]);
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
