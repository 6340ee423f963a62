import fc from 'fast-check';
import { expect, test } from 'vitest';
import { provableRules } from '../../src/engine/authorization/provable-rules.ts';
import type { PolicyFacts } from '../../src/engine/policy/action.ts';
import { compileRule } from '../../src/engine/policy/compile.ts';
import { allowsAction } from '../../src/engine/policy/evaluate.ts';
import { oracleAllows } from '../unit/policy/oracle.ts';
import { type Case, cases, isLong, type Rule, seed } from './policy-cases.ts';
import { factsOf } from './policy-requests.ts';

const compiled = new Map<string, ReturnType<typeof compileRule>>();

/** Whether the part of the rules that a signer can judge allows the action, which it knows in full or by its method. */
function provablyAllows({ rules, action, world }: Case, isContentKnown: boolean): boolean {
  const provable = provableRules(
    rules.map(({ input }) => input),
    isContentKnown ? [] : 'all',
  );
  const { nowMs } = factsOf(world);
  const facts: PolicyFacts = { nowMs, inConditionSet: () => true, aggregation: () => undefined };
  const units = isContentKnown ? action.units : action.units.map(() => ({ label: action.method }));
  const policy = { id: 'policy', rules: provable.map(compile) };
  return allowsAction(policy, { method: action.method, units }, facts);
}

function compile(input: Rule['input']) {
  const key = JSON.stringify(input);
  const rule = compiled.get(key) ?? compileRule(input, chainOf(input));
  compiled.set(key, rule);
  return rule;
}

function chainOf({ method }: Rule['input']): string {
  const chains = ['ethereum', 'solana', 'tron', 'sui', 'xrpl'];
  return chains.find((chain) => canCompile(method, chain))!;
}

function canCompile(method: string, chain: string): boolean {
  try {
    compileRule({ id: '', name: '', method, action: 'ALLOW', conditions: [] }, chain);
    return true;
  } catch {
    return false;
  }
}

/** Whether the decision depends on what only the server knows. */
function isOpen({ rules }: Case): boolean {
  return rules.some(({ input }) =>
    input.conditions.some(
      ({ field_source: source, operator }) => source === 'reference' || operator === 'in_condition_set',
    ),
  );
}

test('a signer refuses nothing that the policy allows, and all that it denies by what is signed', () => {
  const seen = { allowed: 0, denied: 0, left: 0 };
  fc.assert(
    fc.property(cases, (one) => {
      const isAllowed = oracleAllows(
        one.rules.map(({ input }) => input),
        one.action,
        one.world,
      );
      const isProvable = provablyAllows(one, true);
      if (isAllowed) {
        expect(isProvable).toBe(true);
        expect(provablyAllows(one, false)).toBe(true);
      }
      if (!isOpen(one) && one.action.isNamedOnly !== true) expect(isProvable).toBe(isAllowed);
      seen[isAllowed ? 'allowed' : isProvable ? 'left' : 'denied'] += 1;
    }),
    { seed, numRuns: isLong ? 1_000_000 : 2_000 },
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20);
});
