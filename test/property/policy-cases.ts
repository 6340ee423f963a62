import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import type { PolicyAction } from '../../src/engine/policy/action.ts';
import {
  type CompiledPolicy,
  type CompiledRule,
  compileRule,
  type RuleInput,
} from '../../src/engine/policy/compile.ts';
import { evaluatePolicy } from '../../src/engine/policy/evaluate.ts';
import type { World } from '../unit/policy/oracle.ts';
import { conditionOn, type Family, families } from './policy-conditions.ts';
import { factsOf, unitOf, worlds } from './policy-requests.ts';

export const isLong = process.env.TEST_LONG === '1';
/** Printed, so that a run can be repeated. */
export const seed = Number(process.env.TEST_SEED ?? randomInt(2 ** 31));
process.stdout.write(`policy properties: TEST_SEED=${seed}\n`);

const CONDITIONS_A_FAMILY = 1500;
const UNITS_A_FAMILY = 1500;

export interface Rule {
  readonly input: RuleInput;
  readonly compiled: CompiledRule;
}

export interface Case {
  readonly rules: readonly Rule[];
  readonly action: PolicyAction;
  readonly world: World;
}

/** Rules are compiled once and combined to policies, so that most of the time is spent on evaluation. */
export const rulesAndUnits = families.map((family, index) => ({
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

export const cases: fc.Arbitrary<Case> = fc.constantFrom(...rulesAndUnits).chain(({ method, rules, units }) =>
  fc.record({
    rules: fc.array(fc.constantFrom(...rules), { maxLength: 4 }),
    action: fc
      .tuple(fc.array(fc.constantFrom(...units), { maxLength: 2 }), fc.constantFrom(false, false, true))
      .map(([chosen, isNamedOnly]): PolicyAction => ({ method, units: chosen, isNamedOnly })),
    world: worlds,
  }),
);

export const policyOf = (rules: readonly Rule[]): CompiledPolicy => ({
  id: 'policy',
  rules: rules.map(({ compiled }) => compiled),
});
export const allows = (rules: readonly Rule[], { action, world }: Case): boolean =>
  evaluatePolicy(policyOf(rules), action, factsOf(world)).allowed;
