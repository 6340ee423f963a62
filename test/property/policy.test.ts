import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PolicyAction, PolicyFacts, SetCandidate } from '../../src/policy/action.ts';
import {
  type CompiledPolicy,
  type CompiledRule,
  compileRule,
  type RuleInput,
} from '../../src/policy/compile.ts';
import { collectLookups, decideFromTrace, evaluatePolicy } from '../../src/policy/evaluate.ts';
import { setCandidateKey } from '../../src/policy/operators.ts';
import { oracleAllows, type World } from '../unit/policy/oracle.ts';
import { conditionOn, type Family, families } from './policy-conditions.ts';
import { factsOf, unitOf, worlds } from './policy-requests.ts';

const isLong = process.env.TEST_LONG === '1';
const seed = Number(process.env.TEST_SEED ?? randomInt(2 ** 31));
process.stdout.write(`policy properties: TEST_SEED=${seed}\n`);

const CONDITIONS_A_FAMILY = 1500;
const UNITS_A_FAMILY = 1500;

interface Rule {
  readonly input: RuleInput;
  readonly compiled: CompiledRule;
}

interface Case {
  readonly rules: readonly Rule[];
  readonly action: PolicyAction;
  readonly world: World;
}

/** Rules are compiled once, and policies made of them: most of the time goes into judging. */
const rulesAndUnits = families.map((family, index) => ({
  method: family.method,
  rules: sampleRules(family, index),
  units: fc.sample(unitOf(family), { numRuns: UNITS_A_FAMILY, seed: seed + index }),
}));

function sampleRules(family: Family, index: number): Rule[] {
  const ruleFor = (methods: string[], fields: Family['fields'] | []) =>
    fc.record({
      method: fc.constantFrom(...methods),
      action: fc.constantFrom('ALLOW' as const, 'DENY' as const),
      conditions: fc.array(conditionOn(fields), { maxLength: 3 }),
    });
  // A policy of the XRP Ledger has no rules for every method.
  const methods = family.chain === 'xrpl' ? [family.method] : [family.method, family.method, '*'];
  const rule = fc.oneof(
    { arbitrary: ruleFor(methods, family.fields), weight: 12 },
    { arbitrary: ruleFor(['exportPrivateKey'], []), weight: 1 },
  );
  return fc.sample(rule, { numRuns: CONDITIONS_A_FAMILY, seed: seed + index }).map((sampled, number) => {
    const input = { id: `rule${number}`, name: `rule ${number}`, ...sampled };
    return { input, compiled: compileRule(input, family.chain) };
  });
}

const cases: fc.Arbitrary<Case> = fc.constantFrom(...rulesAndUnits).chain(({ method, rules, units }) =>
  fc.record({
    rules: fc.array(fc.constantFrom(...rules), { maxLength: 4 }),
    action: fc
      .array(fc.constantFrom(...units), { maxLength: 2 })
      .map((chosen): PolicyAction => ({ method, units: chosen })),
    world: worlds,
  }),
);

const policyOf = (rules: readonly Rule[]): CompiledPolicy => ({
  id: 'policy',
  rules: rules.map(({ compiled }) => compiled),
});
const allows = (rules: readonly Rule[], { action, world }: Case): boolean =>
  evaluatePolicy(policyOf(rules), action, factsOf(world)).allowed;

test(
  'the engine decides as the oracle does',
  () => {
    const seen = { allowed: 0, denied: 0 };
    fc.assert(
      fc.property(cases, (one) => {
        const { rules, action, world } = one;
        const decision = evaluatePolicy(policyOf(rules), action, factsOf(world));
        const inputs = rules.map(({ input }) => input);
        expect(decision.allowed).toBe(oracleAllows(inputs, action, world));
        if (decideFromTrace(decision) !== decision.allowed)
          throw new Error('the trace implies another decision');
        seen[decision.allowed ? 'allowed' : 'denied'] += 1;
      }),
      { seed, numRuns: isLong ? 10_000_000 : 100_000 },
    );
    process.stdout.write(`decisions: ${JSON.stringify(seen)}\n`);
    // Agreement that everything is denied would prove nothing.
    expect(seen.allowed).toBeGreaterThan(seen.denied / 20);
  },
  24 * 60 * 60 * 1000,
);

const numRuns = isLong ? 200_000 : 5_000;
const anyRule = fc.constantFrom(...rulesAndUnits.flatMap(({ rules }) => rules));

test('a further DENY never allows more', () => {
  fc.assert(
    fc.property(cases, anyRule, fc.nat(4), (one, added, place) => {
      if (added.input.action !== 'DENY') return;
      const more = [...one.rules.slice(0, place), added, ...one.rules.slice(place)];
      expect(Number(allows(more, one))).toBeLessThanOrEqual(Number(allows(one.rules, one)));
    }),
    { seed, numRuns: 3 * numRuns },
  );
});

test('one ALLOW fewer never allows more', () => {
  fc.assert(
    fc.property(cases, fc.nat(3), (one, place) => {
      if (one.rules[place]?.input.action !== 'ALLOW') return;
      const fewer = one.rules.filter((_, index) => index !== place);
      expect(Number(allows(fewer, one))).toBeLessThanOrEqual(Number(allows(one.rules, one)));
    }),
    { seed, numRuns: 3 * numRuns },
  );
});

test('the order of rules and of units does not matter', () => {
  fc.assert(
    fc.property(cases, fc.infiniteStream(fc.nat(999)), (one, order) => {
      const shuffled = <T>(items: readonly T[]): T[] =>
        items
          .map((item) => ({ item, key: Number(order.next().value) }))
          .sort((a, b) => a.key - b.key)
          .map(({ item }) => item);
      const action = { ...one.action, units: shuffled(one.action.units) };
      expect(allows(shuffled(one.rules), { ...one, action })).toBe(allows(one.rules, one));
    }),
    { seed, numRuns },
  );
});

test('a further unit never allows more', () => {
  fc.assert(
    fc.property(cases, (one) => {
      const [, ...rest] = one.action.units;
      if (rest.length === 0) return;
      const fewer = { ...one, action: { ...one.action, units: rest } };
      expect(Number(allows(one.rules, one))).toBeLessThanOrEqual(Number(allows(one.rules, fewer)));
    }),
    { seed, numRuns },
  );
});

test('evaluation asks the outside only for what was collected before', () => {
  fc.assert(
    fc.property(cases, ({ rules, action, world }) => {
      const lookups = collectLookups(policyOf(rules), action, world.nowMs);
      const promised = new Map(
        lookups.conditionSets.map(({ conditionSetId, candidates }) => [
          conditionSetId,
          new Map(candidates.map((candidate) => [setCandidateKey(candidate), candidate])),
        ]),
      );
      const facts = factsOf(world);
      const answers: PolicyFacts = {
        nowMs: world.nowMs,
        inConditionSet(id: string, candidate: SetCandidate) {
          expect(promised.get(id)?.get(setCandidateKey(candidate))).toEqual(candidate);
          return facts.inConditionSet(id, candidate);
        },
        aggregation(id) {
          expect(lookups.aggregationIds).toContain(id);
          return facts.aggregation(id);
        },
      };
      evaluatePolicy(policyOf(rules), action, answers);
    }),
    { seed, numRuns },
  );
});

/** Whatever stands in a unit, of whatever type: as if a decoder had gone mad. */
const anything = fc.anything({ withBigInt: true, withNullPrototype: true, withTypedArray: true });
const madUnits = fc.constantFrom(...rulesAndUnits).chain(({ method, rules, units }) =>
  fc.record({
    method: fc.constant(method),
    rules: fc.array(fc.constantFrom(...rules), { minLength: 1, maxLength: 4 }),
    unit: fc.constantFrom(...units),
    place: fc.nat(7),
    instead: anything,
  }),
);

test('evaluation never throws for JSON that no decoder gives', () => {
  fc.assert(
    fc.property(madUnits, worlds, ({ method, rules, unit, place, instead }, world) => {
      const open = { ...unit, ...spoil(unit, place, instead) };
      const decision = evaluatePolicy(policyOf(rules), { method, units: [open] }, factsOf(world));
      expect(decideFromTrace(decision)).toBe(decision.allowed);
    }),
    { seed, numRuns: 3 * numRuns },
  );
});

/** Puts something else in one place of what a unit holds as free JSON: domain, message, transaction or body. */
function spoil(unit: PolicyAction['units'][number], place: number, instead: unknown): object {
  const replaceOne = (object: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    const names = Object.keys(object);
    return names.length === 0 ? {} : { ...object, [names[place % names.length]!]: instead };
  };
  const { typedData, xrplTransaction, requestBody } = unit;
  if (typedData !== undefined) {
    return {
      typedData: {
        ...typedData,
        domain: replaceOne(typedData.domain),
        message: replaceOne(typedData.message),
      },
    };
  }
  if (xrplTransaction !== undefined) return { xrplTransaction: replaceOne(xrplTransaction) };
  return requestBody === undefined ? {} : { requestBody: replaceOne(requestBody) };
}
