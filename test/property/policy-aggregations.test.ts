import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AggregationDefinition, compileAggregation } from '../../src/engine/policy/aggregation.ts';
import { oracleAdditions } from '../unit/policy/oracle.ts';
import { isLong, seed } from './policy-cases.ts';
import { conditionOn, ethereumCall, type Field, families } from './policy-conditions.ts';
import { factsOf, unitOf, worlds } from './policy-requests.ts';

const family = families[0];
const named = ({ field_source, field, extra }: Field) => ({ field_source, field, ...extra });
const fieldOf = (fields: readonly Field[]) => fc.constantFrom(...fields).map(named);
const definitions: fc.Arbitrary<AggregationDefinition> = fc.record({
  method: fc.constantFrom(family.method, family.method, family.method, 'eth_signUserOperation'),
  metric: fieldOf(ethereumCall.filter(({ kind }) => kind === 'number')),
  group_by: fc.array(fieldOf(ethereumCall), { maxLength: 2 }),
  conditions: fc.array(
    conditionOn(ethereumCall).filter(({ operator }) => operator !== 'in_condition_set'),
    { maxLength: 2 },
  ),
});
const aggregations = fc
  .sample(definitions, { numRuns: 1500, seed })
  .map((definition) => ({ definition, compiled: compileAggregation(definition) }));
const actions = fc.array(unitOf(family), { maxLength: 4 }).map((units) => ({ method: family.method, units }));

test('the contribution of a request to a running total, and its group, match the oracle', () => {
  const seen = { zero: 0, some: 0, unreadable: 0, sameGroup: 0, otherGroup: 0 };
  fc.assert(
    fc.property(fc.constantFrom(...aggregations), actions, worlds, (one, action, world) => {
      const contributions = one.compiled.contributions(action, factsOf(world));
      const additions = oracleAdditions(one.definition, action, world);
      expect(contributions.map(({ amount = 'unreadable' }) => amount)).toEqual(
        additions.map(({ amount }) => amount),
      );
      for (const [index, { amount, group }] of additions.entries()) {
        seen[typeof amount === 'string' ? amount : amount > 0n ? 'some' : 'zero'] += 1;
        for (const other of additions.keys()) {
          const isSame = group === additions[other]!.group;
          expect(contributions[index]!.groupKey === contributions[other]!.groupKey).toBe(isSame);
          if (index !== other) seen[isSame ? 'sameGroup' : 'otherGroup'] += 1;
        }
      }
    }),
    { seed, numRuns: isLong ? 1_000_000 : 2_000 },
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(100);
});

test('a further unit never lowers a total', () => {
  fc.assert(
    fc.property(fc.constantFrom(...aggregations), actions, worlds, ({ compiled }, action, world) => {
      const facts = factsOf(world);
      const all = compiled.contributions(action, facts);
      const fewer = compiled.contributions({ ...action, units: action.units.slice(1) }, facts);
      expect(all.slice(all.length - fewer.length)).toEqual(fewer);
      expect(all.every(({ amount = 0n }) => amount >= 0n)).toBe(true);
    }),
    { seed, numRuns: isLong ? 200_000 : 1_000 },
  );
});
