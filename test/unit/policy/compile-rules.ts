import { parseAbi } from 'viem';
import { expect } from 'vitest';
import { type CompiledPolicy, compilePolicy } from '../../../src/engine/policy/compile.ts';
import { PolicyFormatError } from '../../../src/engine/policy/condition-source.ts';

export const transfer = parseAbi(['function transfer(address to, uint256 amount)'])[0];
export const note = { primary_type: 'Note', types: { Note: [{ name: 'text', type: 'string' }] } };

export interface Refusal {
  readonly pointer: string;
  readonly message: string;
}

export function refusalOf(compile: () => unknown): Refusal {
  try {
    compile();
  } catch (error) {
    if (!(error instanceof PolicyFormatError)) throw error;
    expect(error.name).toBe('PolicyFormatError');
    return { pointer: error.pointer, message: error.message };
  }
  throw new Error('it was compiled');
}

export type Rule = Readonly<Record<string, unknown>>;

export function compileRules(chain_type: string, rules: readonly Rule[]): CompiledPolicy {
  const named = rules.map((rule, index) => ({
    id: `rule ${index}`,
    name: 'a rule',
    action: 'ALLOW',
    ...rule,
  }));
  return compilePolicy({ id: 'policy', chain_type, rules: named as never });
}

export const refusalOfRule = (chain: string, rule: Rule): Refusal =>
  refusalOf(() => compileRules(chain, [rule]));

/** The refusal of one condition in a rule for transactions, with the pointer relative to the condition. */
export function refusalOfCondition(
  condition: Rule,
  method = 'eth_signTransaction',
  chain = 'ethereum',
): Refusal {
  const { pointer, message } = refusalOfRule(chain, { method, conditions: [condition] });
  expect(pointer.startsWith('/rules/0/conditions/0/')).toBe(true);
  return { pointer: pointer.slice('/rules/0/conditions/0'.length), message };
}

export const value = (operator: string, given: unknown): Rule => ({
  field_source: 'ethereum_transaction',
  field: 'value',
  operator,
  value: given,
});
export const calldata = (abi: unknown, field = 'function_name'): Rule => ({
  field_source: 'ethereum_calldata',
  field,
  operator: 'eq',
  value: 'transfer',
  abi,
});
