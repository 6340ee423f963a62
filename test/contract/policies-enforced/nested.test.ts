import { encode } from 'ripple-binary-codec';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { allow, allowed, denied, deny, makeWallet, outcome, type Rule } from './policies.ts';

// A rule on a transaction sees what the signature authorizes: also the transactions inside it.

const when = (field_source: string, field: string, operator: string, value: string | string[]) =>
  ({ field_source, field, operator, value }) as Rule['conditions'][number];

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe('an XRP Ledger batch', () => {
  const [friend, evil] = ['rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'];
  const method = 'xrpl_signTransaction';
  const on = (...condition: [string, string, string | string[]]) => when('xrpl_transaction', ...condition);
  const pay = (Destination: string, Amount = '1') => ({ TransactionType: 'Payment', Destination, Amount });
  const leave = { TransactionType: 'AccountDelete', Destination: evil };
  const toEvil = deny(method, on('Payment.Destination', 'eq', evil));

  test.each([
    ['a receiver', [allow(method), toEvil], [pay(friend), pay(evil)]],
    [
      'an amount',
      [allow(method), deny(method, on('Payment.Amount.drops', 'gt', '1000'))],
      [pay(friend), pay(friend, '1000000')],
    ],
    [
      'a type',
      [allow(method), deny(method, on('TransactionType', 'eq', 'AccountDelete'))],
      [pay(friend), leave],
    ],
    [
      'the receivers of payments',
      [
        allow(method, on('TransactionType', 'in', ['Payment', 'Batch'])),
        deny(method, on('Payment.Destination', 'neq', friend)),
      ],
      [pay(friend), leave],
    ],
  ])('is denied by a rule on %s', async (_name, rules, [good, bad]) => {
    const wallet = await makeWallet(sandbox, 'xrpl', { rules });
    const common = { Account: wallet.address, Sequence: 1, Fee: '0', SigningPubKey: '' };
    const batchOf = (...transactions: readonly object[]) => ({
      ...{ ...common, TransactionType: 'Batch', Fee: '40', Flags: 0x00010000 },
      RawTransactions: transactions.map((each) => ({
        RawTransaction: { ...common, Flags: 0x40000000, ...each },
      })),
    });
    const sign = (transaction: object) => {
      const params = { transaction: encode(transaction as never), encoding: 'hex' };
      return outcome(sandbox, 'walletRpc', { wallet, body: { method, params } });
    };
    expect(await sign({ ...common, Fee: '10', ...bad })).toBe(denied);
    expect(await sign(batchOf(good!, bad!))).toBe(denied);
    expect(await sign(batchOf(bad!, good!))).toBe(denied);
    expect(await sign(batchOf(good!, good!))).toBe(allowed);
  });
});

describe('a value that is spelled as no request has it', () => {
  test.each([
    ['xrpl', 'xrpl_signTransaction', 'xrpl_transaction', 'TransactionType', 'payment'],
    ['xrpl', 'xrpl_signTransaction', 'xrpl_transaction', 'Payment.Amount.currency', 'RLUSD'],
    ['solana', 'signTransaction', 'solana_system_program_instruction', 'instructionName', 'transfer'],
    ['solana', 'signTransaction', 'solana_token_program_instruction', 'instructionName', 'transferchecked'],
  ] as const)('is refused in a rule of %s', async (chain_type, method, source, field, value) => {
    const rules = [deny(method, when(source, field, 'eq', value))];
    const body = { version: '1.0', name: 'Under test', chain_type, rules } as never;
    expect(await refusal(sandbox, 'createPolicy', { body })).toMatchObject({
      status: 400,
      body: { code: 'invalid_policy_format', data: { issues: [{ pointer: '/rules/0/conditions/0/value' }] } },
    });
  });

  test('is refused in a rule on the name of a function', async () => {
    const abi = [{ type: 'function', name: 'transfer', inputs: [], outputs: [] }];
    const named = (value: string, operator = 'eq') => ({
      ...when('ethereum_calldata', 'function_name', operator, value),
      abi,
    });
    const create = (condition: object) => ({
      body: {
        ...{ version: '1.0', name: 'Under test', chain_type: 'ethereum' },
        rules: [deny('eth_signTransaction', condition as never)],
      } as never,
    });
    expect(await refusal(sandbox, 'createPolicy', create(named('Transfer')))).toMatchObject({ status: 400 });
    await call(sandbox, 'createPolicy', create(named('transfer')));
    await call(sandbox, 'createPolicy', create(named('approve', 'neq')));
  });
});
