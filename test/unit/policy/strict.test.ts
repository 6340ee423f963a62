import { zksync } from 'viem/chains';
import { describe, expect, test } from 'vitest';
import type { ActionUnit, PolicyAction } from '../../../src/engine/policy/action.ts';
import { compilePolicy, type RuleInput } from '../../../src/engine/policy/compile.ts';
import { allowsAction, evaluatePolicy } from '../../../src/engine/policy/evaluate.ts';
import { strictly } from '../../../src/engine/policy/strict-methods.ts';

const facts = { nowMs: 0, inConditionSet: () => undefined, aggregation: () => undefined };
const short = { field_source: 'message', field: 'byte_length', operator: 'lte', value: '100' } as const;

function rule(action: 'ALLOW' | 'DENY', method: string, ...conditions: RuleInput['conditions']): RuleInput {
  return { id: `${action} ${method}`, name: 'any', method, action, conditions };
}

/** Whether the rules allow the action as published, and strictly. */
function decisions(action: PolicyAction, ...rules: readonly RuleInput[]): readonly [boolean, boolean] {
  const policy = compilePolicy({ id: 'policy', chain_type: 'ethereum', rules });
  const strict = strictly(action);
  expect(evaluatePolicy(policy, strict, facts).allowed).toBe(allowsAction(policy, strict, facts));
  return [allowsAction(policy, action, facts), allowsAction(policy, strict, facts)];
}

const of = (method: string, unit: Partial<ActionUnit> = {}): PolicyAction => ({
  method,
  units: [{ label: 'unit', ...unit }],
});
const hash = { undecodable: 'only a hash was given' };
const message = (length: number) => ({ messageBytes: new Uint8Array(length) });
const typed = (primaryType: string) => ({
  typedData: { domain: {}, types: { [primaryType]: [] }, primaryType, message: {} },
});

/** A payment on ZKsync as its wallets sign it, by viem. */
function zksyncPayment(): Partial<ActionUnit> {
  const account = (byte: string) => `0x${byte.repeat(20)}` as const;
  const { domain, types, primaryType, message } = zksync.custom.getEip712Domain({
    ...{ type: 'eip712', chainId: 324, nonce: 0, from: account('11'), to: account('22'), value: 5n },
    ...{ data: '0x', gas: 1n, maxFeePerGas: 1n, paymaster: account('33'), paymasterInput: '0x' },
  });
  return { typedData: { domain: { ...domain }, types, primaryType, message } };
}

describe('strict methods', () => {
  test.each([
    ['an export', of('exportPrivateKey')],
    ['an export of the phrase', of('exportSeedPhrase')],
    ['a hash', of('signRawMessageBytes', hash)],
    ['a method that is not decoded', of('secp256k1_sign', hash)],
    [
      'a batch with a part that cannot be read',
      { method: 'x', units: [{ label: 'a' }, { label: 'b', ...hash }] },
    ],
    ['a message of 32 bytes', of('personal_sign', message(32))],
    ['a user operation as typed data', of('eth_signTypedData_v4', typed('PackedUserOperation'))],
    ['the hash of a message of a Light Account', of('eth_signTypedData_v4', typed('LightAccountMessage'))],
    ['the hash of a message of a Safe', of('eth_signTypedData_v4', typed('SafeMessage'))],
    ['the hash of a message of a Kernel', of('eth_signTypedData_v4', typed('Kernel'))],
    ['a transaction of ZKsync as typed data', of('eth_signTypedData_v4', zksyncPayment())],
  ])('`*` does not allow %s', (_name, action) => {
    expect(decisions(action, rule('ALLOW', '*'))).toEqual([true, false]);
  });

  test.each([
    ['a message of 31 bytes', of('personal_sign', message(31))],
    ['a message of 33 bytes', of('personal_sign', message(33))],
    ['an empty message', of('personal_sign', message(0))],
    ['other typed data', of('eth_signTypedData_v4', typed('Permit'))],
    ['a call', of('eth_signTransaction')],
  ])('`*` allows %s', (_name, action) => {
    expect(decisions(action, rule('ALLOW', '*'))).toEqual([true, true]);
    expect(strictly(action)).toBe(action);
  });

  test('a rule that names the method allows it', () => {
    expect(decisions(of('exportPrivateKey'), rule('ALLOW', 'exportPrivateKey'))).toEqual([true, true]);
    expect(decisions(of('personal_sign', message(32)), rule('ALLOW', 'personal_sign'))).toEqual([true, true]);
  });

  test('a condition on a message does not hold for a hash', () => {
    const allow = rule('ALLOW', 'personal_sign', short);
    expect(decisions(of('personal_sign', message(32)), allow)).toEqual([true, false]);
    expect(decisions(of('personal_sign', message(33)), allow)).toEqual([true, true]);
  });

  test('DENY rules for `*` still apply', () => {
    const rules = [rule('DENY', '*'), rule('ALLOW', 'exportPrivateKey')];
    expect(decisions(of('exportPrivateKey'), ...rules)).toEqual([false, false]);
  });
});
