import fc from 'fast-check';
import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { sampled } from '../../../src/observability/gauges.ts';
import { counterOf, histogramOf, prometheusText } from '../../../src/observability/instruments.ts';

const bounds = [0.1, 1, 5];
const label = fc.constantFrom('a', 'b', 'with "quotes"', 'back\\slash', 'new\nline');

/** Samples in any order, without the empty lines and defaults that writers are free to choose. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .sort();

test('the text is that of prom-client', async () => {
  const observation = fc.record({ label, value: fc.double({ min: 0, max: 10, noNaN: true }) });
  await fc.assert(
    fc.asyncProperty(fc.array(observation, { maxLength: 30 }), async (observations) => {
      const registry = new Registry();
      const names = { help: 'Things.', labelNames: ['kind'], registers: [registry] };
      const judge = {
        counter: new Counter({ name: 'things_total', ...names }),
        histogram: new Histogram({ name: 'thing_seconds', ...names, buckets: bounds }),
      };
      const own = {
        counter: counterOf({ name: 'things_total', help: 'Things.', labels: ['kind'] }),
        histogram: histogramOf({ name: 'thing_seconds', help: 'Things.', labels: ['kind'], bounds }),
      };
      for (const { label: kind, value } of observations) {
        judge.counter.inc({ kind });
        judge.histogram.observe({ kind }, value);
        own.counter.with(kind).add();
        own.histogram.with(kind).observe(value);
      }
      const text = prometheusText([own.counter.family(), own.histogram.family()]);
      expect(linesOf(text)).toEqual(linesOf(await registry.metrics()));
    }),
    { numRuns: 50 },
  );
});

test('values of labels beyond a bound are counted together', () => {
  const counter = counterOf({ name: 'things_total', help: 'Things.', labels: ['kind'] });
  for (let kind = 0; kind < 1_500; kind += 1) counter.with(String(kind)).add();
  const lines = linesOf(prometheusText([counter.family()]));
  expect(lines.filter((line) => !line.startsWith('#'))).toHaveLength(1_001);
  expect(lines).toContain('things_total{kind="other"} 500');
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
