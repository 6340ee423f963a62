import { encodeFunctionData, parseAbi, toBytes } from 'viem';
import { describe, expect, test } from 'vitest';
import type { ActionUnit, PolicyAction, PolicyFacts } from '../../../src/engine/policy/action.ts';
import { compilePolicy } from '../../../src/engine/policy/compile.ts';
import type { ConditionInput } from '../../../src/engine/policy/condition-source.ts';
import { evaluatePolicy } from '../../../src/engine/policy/evaluate.ts';

/**
 * More than the arguments of a function call. A Sui command takes three bytes, so a request of 1 MiB can contain this
 * many.
 */
const MANY = 250_000;
const facts: PolicyFacts = { nowMs: 0, inConditionSet: () => undefined, aggregation: () => undefined };

function allowedBy(
  chain: string,
  method: string,
  condition: ConditionInput,
  unit: Partial<ActionUnit>,
): boolean {
  const rule = { id: 'rule', name: 'all of them', method, action: 'ALLOW', conditions: [condition] } as const;
  const policy = compilePolicy({ id: 'policy', chain_type: chain, rules: [rule] });
  const action: PolicyAction = { method, units: [{ label: 'unit', ...unit }] };
  return evaluatePolicy(policy, action, facts).allowed;
}

describe('a request with very many values is evaluated by each of them', () => {
  test('commands of a Sui transaction', () => {
    const only = (names: string[]): ConditionInput => ({
      field_source: 'sui_transaction_command',
      field: 'commandName',
      operator: 'in',
      value: names,
    });
    const last = (name: 'SplitCoins' | 'MergeCoins') => ({
      suiCommands: [...Array.from({ length: MANY }, () => ({ name: 'SplitCoins' }) as const), { name }],
    });
    expect(allowedBy('sui', 'signTransactionBytes', only(['SplitCoins']), last('SplitCoins'))).toBe(true);
    expect(allowedBy('sui', 'signTransactionBytes', only(['SplitCoins']), last('MergeCoins'))).toBe(false);
  });

  test('transfers of a Sui transaction', () => {
    const upToOne: ConditionInput = {
      field_source: 'sui_transfer_objects_command',
      field: 'amount',
      operator: 'lte',
      value: '1',
    };
    const transfer = (amount: bigint) => ({ name: 'TransferObjects', recipient: '0x1', amount }) as const;
    const last = (amount: bigint) => ({
      suiCommands: [...Array.from({ length: MANY }, () => transfer(1n)), transfer(amount)],
    });
    expect(allowedBy('sui', 'signTransactionBytes', upToOne, last(1n))).toBe(true);
    expect(allowedBy('sui', 'signTransactionBytes', upToOne, last(2n))).toBe(false);
  });

  test('elements of an array in calldata', () => {
    const abi = parseAbi(['function pay(uint256[] amounts)']);
    const upToOne: ConditionInput = {
      field_source: 'ethereum_calldata',
      field: 'pay.amounts',
      operator: 'lte',
      value: '1',
      abi,
    };
    const word = (value: number) => value.toString(16).padStart(64, '0');
    const selector = encodeFunctionData({ abi, args: [[]] }).slice(0, 10);
    const last = (amount: number) => ({
      ethereumCall: {
        to: undefined,
        value: 0n,
        chainId: 1n,
        data: toBytes(
          `${selector}${word(32)}${word(MANY)}${word(1).repeat(MANY - 1)}${word(amount)}` as '0x',
        ),
      },
    });
    expect(allowedBy('ethereum', 'eth_signTransaction', upToOne, last(1))).toBe(true);
    expect(allowedBy('ethereum', 'eth_signTransaction', upToOne, last(2))).toBe(false);
  });

  test('elements of an array in typed data', () => {
    const types = { Pay: [{ name: 'amounts', type: 'uint256[]' }] };
    const upToOne: ConditionInput = {
      field_source: 'ethereum_typed_data_message',
      field: 'amounts',
      operator: 'lte',
      value: '1',
      typed_data: { types, primary_type: 'Pay' },
    };
    const last = (amount: number) => ({
      typedData: {
        domain: {},
        types,
        primaryType: 'Pay',
        message: { amounts: [...Array.from({ length: MANY }, () => 1), amount] },
      },
    });
    expect(allowedBy('ethereum', 'eth_signTypedData_v4', upToOne, last(1))).toBe(true);
    expect(allowedBy('ethereum', 'eth_signTypedData_v4', upToOne, last(2))).toBe(false);
  });
});
