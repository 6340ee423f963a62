import { describe, expect, test } from 'vitest';
import {
  calldata,
  compileRules,
  note,
  type Rule,
  refusalOf,
  refusalOfCondition,
  refusalOfRule,
  transfer,
  value,
} from './compile-rules.ts';

test('a fault is reported with its rule and condition', () => {
  const good = { method: 'eth_signTransaction', conditions: [value('eq', '1')] };
  const bad = { method: 'eth_signTransaction', conditions: [value('eq', '1'), value('eq', 'much')] };
  expect(refusalOf(() => compileRules('ethereum', [good, bad]))).toEqual({
    pointer: '/rules/1/conditions/1/value',
    message: 'expected an integer in decimal or 0x hex, got `much`',
  });
});

test('a valid policy is compiled with its ids', () => {
  const policy = compileRules('ethereum', [{ method: '*', conditions: [] }]);
  expect(policy).toEqual({
    id: 'policy',
    rules: [
      { id: 'rule 0', name: 'a rule', method: '*', action: 'ALLOW', conditions: [], setConditions: [] },
    ],
  });
});

test('an internal error is not reported as a fault of the policy', () => {
  const fault = new TypeError('ours');
  const field = {
    get field_source(): string {
      throw fault;
    },
  };
  expect(() => compileRules('ethereum', [{ method: '*', conditions: [field] }])).toThrow(fault);
});

describe('methods', () => {
  const move = 'transfer, earn_deposit, earn_withdraw';
  const own: Readonly<Record<string, string>> = {
    ethereum: `eth_sendTransaction, eth_signTransaction, eth_signUserOperation, eth_signTypedData_v4, personal_sign, eth_sign7702Authorization, wallet_sendCalls, ${move}`,
    solana: `signTransaction, signAndSendTransaction, signMessage, ${move}`,
    tron: 'tron_sendTransaction, tron_signTransaction, signTransactionBytes, signRawMessageBytes, transfer',
    sui: 'signTransactionBytes, signRawMessageBytes',
    xrpl: 'xrpl_signTransaction',
    stellar: 'signRawMessageBytes',
    'bitcoin-segwit': 'signRawMessageBytes',
  };

  test.each(Object.entries(own))('methods of %s', (chain, methods) => {
    const all = `${methods}, exportPrivateKey, exportSeedPhrase${chain === 'xrpl' ? '' : ', *'}`;
    expect(refusalOfRule(chain, { method: 'eth_fly', conditions: [] })).toEqual({
      pointer: '/rules/0/method',
      message: `\`eth_fly\` is not a rule method of \`${chain}\`; use one of ${all}`,
    });
    for (const method of all.split(', ')) {
      expect(compileRules(chain, [{ method, conditions: [] }]).rules[0]?.method).toBe(method);
    }
  });

  test('a method of another chain is refused', () => {
    expect(refusalOfRule('solana', { method: 'personal_sign', conditions: [] }).pointer).toBe(
      '/rules/0/method',
    );
  });

  test('`*` on the XRP Ledger', () => {
    expect(refusalOfRule('xrpl', { method: '*', conditions: [] }).message).toMatch(
      /^`\*` is not a rule method of `xrpl`;/,
    );
  });
});

describe('sources', () => {
  test('an unknown field source is refused', () => {
    expect(refusalOfCondition({ ...value('eq', '1'), field_source: 'moon' })).toEqual({
      pointer: '/field_source',
      message: 'unknown field source `moon`',
    });
  });

  test.each(['constructor', '__proto__', 'toString'])(
    '`%s`, a member of Object.prototype',
    (field_source) => {
      expect(refusalOfCondition({ ...value('eq', '1'), field_source }).pointer).toBe('/field_source');
    },
  );

  const fields: readonly [source: string, methods: string[], condition: Rule][] = [
    [
      'ethereum_transaction',
      ['eth_sendTransaction', 'eth_signTransaction', 'eth_signUserOperation', 'wallet_sendCalls'],
      value('eq', '1'),
    ],
    [
      'ethereum_calldata',
      ['eth_sendTransaction', 'eth_signTransaction', 'eth_signUserOperation', 'wallet_sendCalls'],
      calldata([transfer]),
    ],
    ['ethereum_typed_data_domain', ['eth_signTypedData_v4'], { field: 'chainId', value: '1' }],
    [
      'ethereum_typed_data_message',
      ['eth_signTypedData_v4'],
      { field: 'text', value: 'a', typed_data: note },
    ],
    [
      'ethereum_7702_authorization',
      ['eth_sign7702Authorization'],
      { field: 'contract', value: `0x${'0'.repeat(40)}` },
    ],
    ['tempo_transaction', ['eth_sendTransaction', 'eth_signTransaction'], { field: 'nonce_key', value: '1' }],
    ['message', ['personal_sign'], { field: 'content', value: 'a' }],
    ['action_request_body', ['transfer', 'earn_deposit', 'earn_withdraw'], { field: 'vault_id', value: 'a' }],
    ['reference', ['eth_signTransaction', 'eth_signUserOperation'], { field: 'aggregation.a', value: '1' }],
    [
      'system',
      ['eth_sendTransaction', 'personal_sign', 'exportPrivateKey', 'transfer'],
      { field: 'current_unix_timestamp', value: '1' },
    ],
  ];

  test.each(fields)('%s is valid for its methods and `*` only', (field_source, methods, condition) => {
    const whole = { operator: 'eq', ...condition, field_source };
    for (const method of [...methods, '*']) {
      expect(compileRules('ethereum', [{ method, conditions: [whole] }]).rules).toHaveLength(1);
    }
    if (field_source === 'system') return;
    const others = ['eth_sendTransaction', 'eth_signTypedData_v4', 'personal_sign', 'exportPrivateKey'];
    for (const method of others.filter((other) => !methods.includes(other))) {
      expect(refusalOfCondition(whole, method)).toEqual({
        pointer: '/field_source',
        message: `\`${field_source}\` does not apply to the method \`${method}\``,
      });
    }
  });

  const ofOtherChains: readonly [
    source: string,
    chain: string,
    methods: string[],
    field: string,
    value: string,
  ][] = [
    [
      'solana_program_instruction',
      'solana',
      ['signTransaction', 'signAndSendTransaction'],
      'programId',
      '1'.repeat(32),
    ],
    [
      'solana_system_program_instruction',
      'solana',
      ['signTransaction', 'signAndSendTransaction'],
      'Transfer.lamports',
      '1',
    ],
    [
      'solana_token_program_instruction',
      'solana',
      ['signTransaction', 'signAndSendTransaction'],
      'Burn.amount',
      '1',
    ],
    ['message', 'solana', ['signMessage'], 'content', 'a'],
    [
      'tron_transaction',
      'tron',
      ['tron_signTransaction', 'tron_sendTransaction', 'signTransactionBytes'],
      'TransferContract.amount',
      '1',
    ],
    ['xrpl_transaction', 'xrpl', ['xrpl_signTransaction'], 'TransactionType', 'Payment'],
    ['sui_transaction_command', 'sui', ['signTransactionBytes'], 'commandName', 'SplitCoins'],
    ['sui_transfer_objects_command', 'sui', ['signTransactionBytes'], 'amount', '1'],
    ['message', 'sui', ['signRawMessageBytes'], 'content', 'a'],
  ];

  test.each(ofOtherChains)('%s of %s is valid for %s only', (field_source, chain, methods, field, given) => {
    const condition = { field_source, field, operator: 'eq', value: given };
    for (const method of methods) {
      expect(compileRules(chain, [{ method, conditions: [condition] }]).rules).toHaveLength(1);
    }
    expect(refusalOfCondition(condition, 'exportPrivateKey', chain).pointer).toBe('/field_source');
  });
});

describe('fields', () => {
  const wrong: readonly [source: string, chain: string, method: string, field: string, more?: Rule][] = [
    ['ethereum_transaction', 'ethereum', 'eth_signTransaction', 'data'],
    ['ethereum_transaction', 'ethereum', 'eth_signTransaction', ''],
    ['ethereum_typed_data_domain', 'ethereum', 'eth_signTypedData_v4', 'name'],
    ['ethereum_typed_data_message', 'ethereum', 'eth_signTypedData_v4', 'texts', { typed_data: note }],
    ['ethereum_typed_data_message', 'ethereum', 'eth_signTypedData_v4', 'text.0', { typed_data: note }],
    ['ethereum_7702_authorization', 'ethereum', 'eth_sign7702Authorization', 'nonce'],
    ['tempo_transaction', 'ethereum', 'eth_signTransaction', 'calls'],
    ['message', 'ethereum', 'personal_sign', 'text'],
    ['action_request_body', 'ethereum', 'transfer', 'source'],
    ['action_request_body', 'ethereum', 'transfer', 'toString'],
    ['reference', 'ethereum', 'eth_signTransaction', 'aggregation.'],
    ['reference', 'ethereum', 'eth_signTransaction', 'aggregation.A'],
    ['reference', 'ethereum', 'eth_signTransaction', 'total.a'],
    ['system', 'ethereum', 'personal_sign', 'version'],
    ['solana_program_instruction', 'solana', 'signTransaction', 'accounts'],
    ['solana_system_program_instruction', 'solana', 'signTransaction', 'Transfer.amount'],
    ['solana_token_program_instruction', 'solana', 'signTransaction', 'Transfer.lamports'],
    ['solana_token_program_instruction', 'solana', 'signTransaction', 'Approve.amount'],
    ['tron_transaction', 'tron', 'tron_signTransaction', 'TransferContract.owner_address'],
    ['xrpl_transaction', 'xrpl', 'xrpl_signTransaction', 'Payment.Amount'],
    ['xrpl_transaction', 'xrpl', 'xrpl_signTransaction', 'TrustSet.LimitAmount.drops'],
    ['sui_transaction_command', 'sui', 'signTransactionBytes', 'name'],
    ['sui_transfer_objects_command', 'sui', 'signTransactionBytes', 'object'],
  ];

  test.each(wrong)('%s of %s, %s: `%s`', (field_source, chain, method, field, more) => {
    const condition = { field_source, field, operator: 'eq', value: '1', ...more };
    expect(refusalOfCondition(condition, method, chain)).toEqual({
      pointer: '/field',
      message: `\`${field}\` is not a field of \`${field_source}\``,
    });
  });
});

describe('operators', () => {
  const equality = 'eq, neq, in, in_condition_set';
  const ordering = `${equality}, gt, gte, lt, lte`;
  const cases: readonly [source: string, field: string, method: string, chain: string, allowed: string][] = [
    ['ethereum_transaction', 'to', 'eth_signTransaction', 'ethereum', equality],
    ['ethereum_transaction', 'value', 'eth_signTransaction', 'ethereum', ordering],
    ['ethereum_transaction', 'chain_id', 'eth_signTransaction', 'ethereum', ordering],
    ['ethereum_typed_data_domain', 'chain_id', 'eth_signTypedData_v4', 'ethereum', ordering],
    ['ethereum_typed_data_domain', 'verifyingContract', 'eth_signTypedData_v4', 'ethereum', equality],
    ['ethereum_7702_authorization', 'contract', 'eth_sign7702Authorization', 'ethereum', equality],
    ['tempo_transaction', 'fee_payer_signature', 'eth_signTransaction', 'ethereum', 'eq'],
    ['tempo_transaction', 'fee_token', 'eth_signTransaction', 'ethereum', equality],
    ['tempo_transaction', 'valid_after', 'eth_signTransaction', 'ethereum', ordering],
    ['message', 'content', 'personal_sign', 'ethereum', `${equality}, contains, starts_with, ends_with`],
    ['message', 'byte_length', 'personal_sign', 'ethereum', 'eq, gt, gte, lt, lte'],
    ['action_request_body', 'source.amount', 'transfer', 'ethereum', 'eq, gt, gte, lt, lte'],
    ['action_request_body', 'source.asset', 'transfer', 'ethereum', equality],
    ['reference', 'aggregation.a', 'eth_signTransaction', 'ethereum', 'eq, neq, in, gt, gte, lt, lte'],
    ['system', 'current_unix_timestamp', 'personal_sign', 'ethereum', ordering],
    ['solana_program_instruction', 'programId', 'signTransaction', 'solana', equality],
    ['solana_system_program_instruction', 'Transfer.lamports', 'signTransaction', 'solana', ordering],
    ['solana_token_program_instruction', 'instructionName', 'signTransaction', 'solana', equality],
    ['tron_transaction', 'TransferContract.to_address', 'tron_signTransaction', 'tron', equality],
    ['xrpl_transaction', 'Payment.Amount.value', 'xrpl_signTransaction', 'xrpl', ordering],
    ['xrpl_transaction', 'Payment.Amount.currency', 'xrpl_signTransaction', 'xrpl', equality],
    ['sui_transaction_command', 'commandName', 'signTransactionBytes', 'sui', 'eq, in'],
    ['sui_transfer_objects_command', 'recipient', 'signTransactionBytes', 'sui', equality],
  ];

  test.each(cases)('operators of %s.%s', (field_source, field, method, chain, allowed) => {
    const all = [
      'eq',
      'neq',
      'gt',
      'gte',
      'lt',
      'lte',
      'in',
      'in_condition_set',
      'contains',
      'starts_with',
      'ends_with',
    ];
    for (const operator of [...all, 'like'].filter((one) => !allowed.split(', ').includes(one))) {
      const refused = refusalOfCondition({ field_source, field, operator, value: '1' }, method, chain);
      expect(refused).toEqual({
        pointer: '/operator',
        message: `\`${operator}\` does not apply to the field \`${field}\`; use one of ${allowed}`,
      });
    }
  });
});
