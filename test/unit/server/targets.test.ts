import { expect, test } from 'vitest';
import { isPlainTarget } from '../../../src/server/app.ts';

// Node warns of `url.parse` (DEP0169), which express calls for these targets (`fastparse` of the package `parseurl`).
test.each([
  undefined,
  '',
  '*',
  'http://127.0.0.1/v1/wallets',
  '/v1/wallets#fragment',
  '/v1/\u00a0',
  '/v1/\ufeff',
  '/v1/a b',
])('%j does not pass through express', (target) => {
  expect(isPlainTarget(target)).toBe(false);
});

test.each(['/', '/v1/wallets', '/v1/wallets?limit=1&cursor=%20', '/v1/%23', '//'])('%j does', (target) => {
  expect(isPlainTarget(target)).toBe(true);
});
