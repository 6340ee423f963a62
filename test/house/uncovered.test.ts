import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { combinationsOf } from '../../src/tools/contract/contract-document.ts';
import { readDocument } from '../ledger/documented.ts';
import { gapsPath, readGaps } from '../ledger/ledger.ts';

// The statuses, error codes and events of the contract that no test exercises, each with the reason. A run of all tests
// fails when one is missing from the list, and when a listed one is exercised. The list may only shrink.
const gaps = readGaps();

/** What the list may hold at most; lower it whenever the list has shrunk. */
const mostListed = 3;

test('the list has only shrunk', () => {
  expect(gaps.length).toBeLessThanOrEqual(mostListed);
});

test('every line names something that the contract documents, once and in order', () => {
  const documented = new Set(combinationsOf(readDocument()).map(({ name }) => name));
  const names = gaps.map(({ name }) => name);
  expect(names.filter((name) => !documented.has(name))).toEqual([]);
  expect(names).toEqual([...new Set(names)].sort());
});

test('every line has a reason', () => {
  expect(gaps.filter(({ reason }) => reason === '').map(({ name }) => name)).toEqual([]);
  expect(readFileSync(gapsPath, 'utf8')).toMatch(/\n$/);
});

test('an event that nothing records is listed: tests can make it, operations cannot', () => {
  const untriggered = readFileSync(join(import.meta.dirname, 'untriggered-events.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  const names = gaps.map(({ name }) => name);
  expect(untriggered.filter((type) => !names.includes(`event ${type}`))).toEqual([]);
});
