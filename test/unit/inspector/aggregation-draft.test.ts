import { expect, test } from 'vitest';
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { compileAggregation } from '../../../src/engine/policy/aggregation.ts';
import {
  choiceOf,
  firstAggregation,
  groupings,
  lowestLimit,
  metrics,
  readAggregation,
  sumText,
  tokenOf,
  unitOfSums,
  usedShare,
  windows,
  withGroups,
  withToken,
} from '../../../src/web/inspector/aggregations/draft.ts';

const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

test('everything that the form offers is a valid aggregation', () => {
  const { minimum, maximum } = document.components.schemas.AggregationWindow.properties.seconds;
  for (const [, seconds] of windows) {
    expect(seconds).toBeGreaterThanOrEqual(minimum);
    expect(seconds).toBeLessThanOrEqual(maximum);
  }
  for (const [, metric] of metrics) {
    for (const [, groups] of groupings) {
      const draft = withToken(withGroups({ ...firstAggregation, metric }, groups), usdc);
      expect(compileAggregation(draft).method).toBe(firstAggregation.method);
      expect(readAggregation(JSON.stringify(draft))).toEqual(draft);
      expect([
        choiceOf(metrics, draft.metric),
        choiceOf<readonly object[]>(groupings, draft.group_by ?? []),
      ]).toEqual([
        metrics.findIndex(([, each]) => each === metric),
        groupings.findIndex(([, each]) => each === groups),
      ]);
    }
  }
});

test('the token contract is one of the conditions', () => {
  expect(withToken(firstAggregation, ' ')).toEqual(firstAggregation);
  const ofToken = withToken(firstAggregation, ` ${usdc} `);
  expect(tokenOf(ofToken)).toBe(usdc);
  expect(withToken(ofToken, '')).toEqual(firstAggregation);
  const chain = {
    field_source: 'ethereum_transaction',
    field: 'chain_id',
    operator: 'eq',
    value: '1',
  } as const;
  const both = withToken({ ...firstAggregation, conditions: [chain] }, usdc);
  expect(withToken(both, '').conditions).toEqual([chain]);
  expect([tokenOf(firstAggregation), tokenOf(both)]).toEqual(['', usdc]);
});

test.each([
  ['{', 'the aggregation is not JSON'],
  ['{"name":"a","window":{}}', 'expected `metric`'],
  ['{"metric":{},"window":1}', 'expected `window`'],
  ['{"metric":{},"window":{},"conditions":{}}', 'expected conditions to be a list'],
])('%s is refused with its place', (text, message) => {
  expect(() => readAggregation(text)).toThrow(message);
});

test('sums are written in the unit of their asset', () => {
  const ether = unitOfSums({ metric: { ...firstAggregation.metric }, conditions: [] });
  expect(sumText('250000000000000000', ether)).toBe('0.25 ETH');
  const [, [, tokens]] = metrics as unknown as readonly [unknown, readonly [string, object]];
  const { conditions = [] } = withToken(firstAggregation, usdc);
  const dollars = unitOfSums({ metric: { ...tokens }, conditions: conditions.map((each) => ({ ...each })) });
  expect(sumText('1234500000', dollars)).toBe('1,234.5 USDC');
  expect(sumText('1234500000', unitOfSums({ metric: { ...tokens }, conditions: [] }))).toBe('1,234,500,000');
});

test('the lowest limit is what a rule permits or forbids, and shows how much of it is used', () => {
  const policy = { id: 'p', name: 'Limits' };
  const limit = (action: string, operator: string, ...values: string[]) => ({
    ...{ policy, rule_name: 'r', action, operator, values },
  });
  expect(lowestLimit({ limits: [] })).toBeUndefined();
  expect(lowestLimit({ limits: [limit('ALLOW', 'gte', '1'), limit('DENY', 'lte', '2')] })).toBeUndefined();
  expect(
    lowestLimit({
      limits: [limit('ALLOW', 'lte', '900'), limit('DENY', 'gt', '1000'), limit('ALLOW', 'lt', 'x')],
    }),
  ).toBe('900');
  expect([
    usedShare('0', '900'),
    usedShare('450', '900'),
    usedShare('901', '900'),
    usedShare('1', '0'),
  ]).toEqual([0, 0.5, 1, 1]);
});
