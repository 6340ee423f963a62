import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pageText } from '../figures/page.ts';
import { folder, readResult, root } from '../figures/results.ts';
import { figures } from '../figures/rows.ts';

const names = figures.map(({ name }) => name);
const kept = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.slice(0, -'.json'.length));

test('the page of the figures shows the results that are kept', () => {
  expect(readFileSync(join(folder, 'README.md'), 'utf8')).toBe(pageText());
});

test('results are of figures that exist, and say when, where and of what', () => {
  expect(kept.filter((name) => !names.includes(name))).toEqual([]);
  for (const name of kept) {
    expect(readResult(name), name).toMatchObject({
      figure: name,
      date: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      commit: expect.stringMatching(/^[0-9a-f]{7,40}$/),
      machine: { cores: expect.any(Number), cpu: expect.any(String), node: expect.any(String) },
      command: expect.stringContaining(`npm run figures -- ${name}`),
      outcome: expect.stringMatching(/^(passed|failed)$/),
      seconds: expect.any(Number),
    });
  }
});

test('a result without failures has passed, and one with failures has not', () => {
  const contradictory = kept.filter((name) => {
    const { outcome, failures, tests } = readResult(name)!;
    const hasFailed = failures.length > 0 || (tests?.failed ?? 0) > 0;
    return outcome === 'passed' && hasFailed;
  });
  expect(contradictory).toEqual([]);
});

test('the files that figures run exist', () => {
  const named = figures.flatMap(({ measurement }) =>
    measurement.by === 'tests'
      ? measurement.files
      : measurement.by === 'program'
        ? [measurement.args[0]!]
        : [],
  );
  expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
