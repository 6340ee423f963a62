import { describe, expect, test } from 'vitest';
import { compilePolicy } from '../../../src/engine/policy/compile.ts';
import { conditionSources } from '../../../src/engine/policy/conditions.ts';
import { allowsAction, decisionOf, evaluatePolicy } from '../../../src/engine/policy/evaluate.ts';
import type { Observation } from '../../../src/engine/policy/values.ts';
import { factsOf } from '../../property/policy-requests.ts';
import { calldataText, caseFiles, readCaseFile } from './case-file.ts';
import { makeCalldata } from './make-calldata.ts';
import { oracleAllows, oracleTruths } from './oracle.ts';

test('there is a file for every condition source', () => {
  const sources = Object.keys(conditionSources).map((source) => `${source}.yaml`);
  expect(caseFiles).toEqual([...sources, 'rules.yaml'].sort());
});

test('calldata.yaml matches the encoding of viem', () => {
  expect(calldataText).toBe(makeCalldata());
});

describe.each(caseFiles)('%s', (file) => {
  test.each(readCaseFile(file))('$name', ({ chain, rules, action, world, decision, by, sees }) => {
    const policy = compilePolicy({ id: 'policy', chain_type: chain, rules });
    const traced = evaluatePolicy(policy, action, factsOf(world));

    expect(traced.allowed ? 'allowed' : 'denied').toBe(decision);
    expect(decisionOf(traced).allowed).toBe(traced.allowed);
    expect(allowsAction(policy, action, factsOf(world))).toBe(traced.allowed);
    if (by !== undefined) expect(traced.units[0]?.deciding_rule_id).toBe(`rule ${by}`);
    if (sees !== undefined) expect(inWords(traced.units[0]?.rules[0]?.conditions[0]?.observed)).toBe(sees);
    // The cases also test the oracle, which in turn checks every condition of the cases.
    const results = traced.units.map(({ rules }) =>
      rules.map(({ conditions }) => conditions.map(({ result }) => result)),
    );
    const applying = rules.filter(({ method }) => method === action.method || method === '*');
    const truths = action.units.map((unit) => applying.map((rule) => oracleTruths(rule, unit, world)));
    expect(results).toEqual(truths);
    expect(oracleAllows(rules, action, world) ? 'allowed' : 'denied').toBe(decision);
  });
});

function inWords(observed: Observation | undefined): string | undefined {
  if (observed === undefined) return undefined;
  if (observed.state === 'present') return observed.values.join(', ');
  return `${observed.state === 'absent' ? 'nothing' : 'unreadable'}: ${observed.reason}`;
}
