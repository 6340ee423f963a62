import { expect, test } from 'vitest';
import { openContract } from '../../../src/tools/mcp/search-contract.ts';

test.each([
  ['spending limit per day', 'createAggregation', /Operator/],
  ['aggregations', 'createAggregation', /Operator/],
  ['archive a wallet', 'archiveWallet', /^never$/],
])('a search for `%s` matches words, and finds %s', (text, id, wrong) => {
  const found = openContract()
    .search(text, 8)
    .map(({ operation }) => operation);
  expect(found).toContain(id);
  expect(found.filter((operation) => wrong.test(operation))).toEqual([]);
});
