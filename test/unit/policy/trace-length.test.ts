import { expect, test } from 'vitest';
import {
  type ConditionTrace,
  decisionOf,
  type PolicyDecision,
  type RuleTrace,
  type Truth,
  type UnitTrace,
} from '../../../src/engine/policy/evaluate.ts';
import { shortenTrace, traceLength } from '../../../src/engine/policy/trace-length.ts';
import { present, presentAll, unreadable } from '../../../src/engine/policy/values.ts';

const condition = (result: Truth, more: Partial<ConditionTrace> = {}): ConditionTrace => ({
  field_source: 'message',
  field: 'content',
  operator: 'eq',
  value: 'x',
  observed: result === 'unknown' ? unreadable('not text') : present('y'),
  result,
  ...more,
});
const rule = (action: 'ALLOW' | 'DENY', matched: boolean, ...conditions: ConditionTrace[]): RuleTrace => ({
  rule_id: `${action} ${conditions.map(({ result }) => result)}`,
  rule_name: 'rule',
  action,
  method: 'personal_sign',
  conditions,
  matched,
});
const unit = (outcome: UnitTrace['outcome'], deciding: string | null, ...rules: RuleTrace[]): UnitTrace => ({
  unit: outcome,
  rules,
  outcome,
  deciding_rule_id: deciding,
});
const decision = (...units: UnitTrace[]): PolicyDecision => ({
  allowed: units.every(({ outcome }) => outcome === 'allowed'),
  policy_id: 'policy',
  method: 'personal_sign',
  units,
});

const allowed = unit('allowed', 'ALLOW true,true', rule('ALLOW', true, condition('true'), condition('true')));
const unmatched = unit(
  'no_rule_matched',
  null,
  rule('ALLOW', false, condition('true'), condition('false'), condition('unknown')),
  rule('ALLOW', false, condition('true'), condition('unknown')),
  rule('DENY', false, condition('unknown'), condition('false')),
);
const denied = unit(
  'denied_by_rule',
  'DENY unknown,true',
  rule('DENY', true, condition('unknown'), condition('true')),
  rule('ALLOW', true, condition('true')),
);

test('a shortened trace keeps the first denied unit and the deciding part of each rule', () => {
  const results = (shortened: PolicyDecision) =>
    shortened.units.map(({ unit: name, rules }) => [
      name,
      ...rules.map(({ conditions }) => conditions.map(({ result }) => result)),
    ]);
  expect(results(shortenTrace(decision(allowed, unmatched, denied)))).toEqual([
    ['no_rule_matched', ['false'], ['unknown'], ['false']],
  ]);
  expect(results(shortenTrace(decision(denied, unmatched)))).toEqual([
    ['denied_by_rule', ['unknown'], ['true']],
  ]);
  expect(results(shortenTrace(decision(allowed, allowed)))).toEqual([['allowed', ['true']]]);
  expect(shortenTrace(decision())).toEqual(decision());
  const plain = unit('no_rule_for_method', null);
  expect(shortenTrace(decision(plain))).toEqual(decision(plain));
});

test.each([[allowed], [unmatched], [denied]])(
  'the shortened trace of $outcome implies the same decision',
  (own) => {
    const whole = decision(own);
    expect(decisionOf(shortenTrace(whole))).toEqual(decisionOf(whole));
    expect(decisionOf(whole).units[0]).toMatchObject({
      outcome: own.outcome,
      deciding_rule_id: own.deciding_rule_id,
    });
  },
);

test('observed values are truncated to three values of 200 characters', () => {
  const observed = presentAll(['a'.repeat(200), 'b'.repeat(201), 'c', 'd']);
  const long = unit('no_rule_matched', null, rule('ALLOW', false, condition('false', { observed })));
  expect(shortenTrace(decision(long)).units[0]!.rules[0]!.conditions[0]!.observed).toEqual({
    state: 'present',
    values: ['a'.repeat(200), `${'b'.repeat(200)}…`, 'c'],
  });
});

test('the length of a trace is about that of its JSON, and counts every text', () => {
  const units = [allowed, unmatched, denied];
  const jsonLength = JSON.stringify(units).length;
  expect(traceLength(units)).toBeGreaterThan(jsonLength / 2);
  expect(traceLength(units)).toBeLessThan(jsonLength * 2);
  const base = traceLength([unit('allowed', null, rule('ALLOW', true, condition('true')))]);
  const lengthOf = (more: Partial<ConditionTrace>) =>
    traceLength([unit('allowed', null, rule('ALLOW', true, condition('true', more)))]);
  expect(lengthOf({ value: 'x'.repeat(1001) })).toBe(base + 1000);
  expect(lengthOf({ value: ['x', 'x'.repeat(1000)] })).toBe(base + 1003);
  expect(lengthOf({ observed: present('y'.repeat(1001)) })).toBe(base + 1000);
  expect(lengthOf({ observed: presentAll(['y', 'y'.repeat(500), 'y'.repeat(500)]) })).toBe(base + 1006);
  expect(lengthOf({ observed: unreadable('z'.repeat(1004)) })).toBe(base + 1000);
  // An observation that many conditions share counts for each of them.
  const shared = present('y'.repeat(1000));
  const twice = rule(
    'ALLOW',
    true,
    condition('true', { observed: shared }),
    condition('true', { observed: shared }),
  );
  expect(traceLength([unit('allowed', null, twice)])).toBeGreaterThan(2000);
});
