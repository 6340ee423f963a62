import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PolicyFacts, SetCandidate } from '../../src/engine/policy/action.ts';
import { conditionSources } from '../../src/engine/policy/conditions.ts';
import {
  allowsAction,
  collectLookups,
  decisionOf,
  evaluatePolicy,
  type PolicyDecision,
} from '../../src/engine/policy/evaluate.ts';
import { setCandidateKey } from '../../src/engine/policy/operators.ts';
import { figureSize, noteFigure } from '../figures/figure.ts';
import { oracleAllows, oracleTruths } from '../unit/policy/oracle.ts';
import { allows, type Case, cases, isLong, policyOf, rulesAndUnits, seed } from './policy-cases.ts';
import { factsOf } from './policy-requests.ts';

/** How often conditions of each source had each result. */
type Tally = Map<string, { true: number; false: number; unknown: number }>;

/** Throws when the engine and the oracle disagree on a condition. */
function compareTruths({ rules, action, world }: Case, units: PolicyDecision['units'], tally: Tally): void {
  const inputs = new Map(rules.map(({ input }) => [input.id, input]));
  for (const [index, unit] of units.entries()) {
    for (const rule of unit.rules) {
      const input = inputs.get(rule.rule_id)!;
      const truths = oracleTruths(input, action.units[index]!, world);
      for (const [place, { field_source: source, result }] of rule.conditions.entries()) {
        if (result !== truths[place])
          throw new Error(`${source} is ${result}, the oracle says ${truths[place]}`);
        const counted = tally.get(source) ?? { true: 0, false: 0, unknown: 0 };
        counted[result] += 1;
        tally.set(source, counted);
      }
    }
  }
}

const pairs = figureSize({ short: 2_000, long: 10_000_000 });

test(
  'the engine agrees with the oracle on every decision and every condition',
  () => {
    const seen = { allowed: 0, denied: 0 };
    const tally: Tally = new Map();
    fc.assert(
      fc.property(cases, (one) => {
        const { rules, action, world } = one;
        const decision = evaluatePolicy(policyOf(rules), action, factsOf(world));
        const inputs = rules.map(({ input }) => input);
        expect(decision.allowed).toBe(oracleAllows(inputs, action, world));
        expect(allowsAction(policyOf(rules), action, factsOf(world))).toBe(decision.allowed);
        compareTruths(one, decision.units, tally);
        const implied = decisionOf(decision);
        expect(implied.allowed).toBe(decision.allowed);
        expect(implied.units).toEqual(
          decision.units.map(({ unit, outcome, deciding_rule_id }) => ({ unit, outcome, deciding_rule_id })),
        );
        seen[decision.allowed ? 'allowed' : 'denied'] += 1;
      }),
      { seed, numRuns: pairs },
    );
    process.stdout.write(`decisions: ${JSON.stringify(seen)}\n`);
    noteFigure({ pairs, seed, ...seen });
    if (process.env.TEST_TALLY === '1') process.stdout.write(`${tallyText(tally)}\n`);
    // Agreement that everything is denied, or on conditions that never hold, would prove nothing.
    expect(seen.allowed).toBeGreaterThan(seen.denied / 20);
    expect([...tally.keys()].sort()).toEqual(Object.keys(conditionSources).sort());
    for (const [source, { unknown, ...known }] of tally) {
      expect(Math.min(...Object.values(known)), source).toBeGreaterThan(0);
      // The time of the request can always be read.
      expect(unknown > 0, source).toBe(source !== 'system');
    }
  },
  24 * 60 * 60 * 1000,
);

function tallyText(tally: Tally): string {
  return [...tally]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([source, counts]) => `${source.padEnd(36)}${JSON.stringify(counts)}`)
    .join('\n');
}

const numRuns = isLong ? 200_000 : 2_000;
const anyRule = fc.constantFrom(...rulesAndUnits.flatMap(({ rules }) => rules));

test('an additional DENY never allows more', () => {
  fc.assert(
    fc.property(cases, anyRule, fc.nat(4), (one, added, place) => {
      if (added.input.action !== 'DENY') return;
      const more = [...one.rules.slice(0, place), added, ...one.rules.slice(place)];
      expect(Number(allows(more, one))).toBeLessThanOrEqual(Number(allows(one.rules, one)));
    }),
    { seed, numRuns: 3 * numRuns },
  );
});

test('removing an ALLOW never allows more', () => {
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

test('an additional unit never allows more', () => {
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

test('evaluation looks up only values that were collected before', () => {
  fc.assert(
    fc.property(cases, ({ rules, action, world }) => {
      const lookups = collectLookups(policyOf(rules), action, world.nowMs);
      const promised = new Map(
        lookups.map(({ conditionSetId, candidates }) => [
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
        aggregation: facts.aggregation,
      };
      evaluatePolicy(policyOf(rules), action, answers);
    }),
    { seed, numRuns },
  );
});
