import { encode } from 'ripple-binary-codec';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
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
  ])('an XRP Ledger batch is denied by a rule on %s', async (_name, rules, [good, bad]) => {
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

describe('typed data', () => {
  const order = [
    { name: 'offerer', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ];
  const good = { offerer: `0x${'11'.repeat(20)}`, amount: '1' };
  const bad = { ...good, amount: '1001' };
  const sign = async (rules: readonly Rule[], typed_data: object) => {
    const wallet = await makeWallet(sandbox, 'ethereum', { rules });
    const body = { method: 'eth_signTypedData_v4', params: { typed_data } };
    return outcome(sandbox, 'walletRpc', { wallet, body });
  };
  const domain = { name: 'Market', chainId: 1 };
  const atMost = (Order: readonly object[]) => [
    allow('eth_signTypedData_v4'),
    deny('eth_signTypedData_v4', {
      ...when('ethereum_typed_data_message', 'amount', 'gt', '1000'),
      typed_data: { primary_type: 'Order', types: { Order } },
    } as never),
  ];

  test.each([
    [
      'a tree of orders, whose root is signed',
      'Order[2][2]',
      [
        [good, good],
        [good, bad],
      ],
      [
        [good, good],
        [good, good],
      ],
    ],
    ['an order that another message wraps', 'Order', bad, good],
    ['a list of orders', 'Order[]', [good, bad], []],
  ])('typed data: is denied by a rule on the orders in %s', async (_name, type, denies, allows) => {
    const types = {
      Order: order,
      Outer: [{ name: 'content', type }],
      Bulk: [{ name: 'outer', type: 'Outer' }],
    };
    const bulk = (content: unknown) => ({
      domain,
      types,
      primary_type: 'Bulk',
      message: { outer: { content } },
    });
    expect(await sign(atMost(order), bulk(denies))).toBe(denied);
    expect(await sign(atMost(order), bulk(allows))).toBe(allowed);
    // Of another type that has the same name.
    const other = [...order].reverse();
    expect(await sign(atMost(other), bulk(denies))).toBe(allowed);
  });

  test('typed data: is denied for an order that contains another one', async () => {
    const Order = [...order, { name: 'next', type: 'Order[]' }];
    const chain = (...amounts: string[]): object => ({
      ...{ ...good, amount: amounts[0] },
      next: amounts.length === 1 ? [] : [chain(...amounts.slice(1))],
    });
    const typedData = (message: object) => ({ domain, types: { Order }, primary_type: 'Order', message });
    expect(await sign(atMost(Order), typedData(chain('1', '2', '1001')))).toBe(denied);
    expect(await sign(atMost(Order), typedData(chain('1', '2', '1000')))).toBe(allowed);
  });
});

describe('a value that is spelled as no request has it', () => {
  test.each([
    ['xrpl', 'xrpl_signTransaction', 'xrpl_transaction', 'TransactionType', 'payment'],
    ['xrpl', 'xrpl_signTransaction', 'xrpl_transaction', 'Payment.Amount.currency', 'RLUSD'],
    ['solana', 'signTransaction', 'solana_system_program_instruction', 'instructionName', 'transfer'],
    ['solana', 'signTransaction', 'solana_token_program_instruction', 'instructionName', 'transferchecked'],
  ] as const)(
    'a value that is spelled as no request has it is refused in a rule of %s',
    async (chain_type, method, source, field, value) => {
      const rules = [deny(method, when(source, field, 'eq', value))];
      const body = { version: '1.0', name: 'Under test', chain_type, rules } as never;
      expect(await refusal(sandbox, 'createPolicy', { body })).toMatchObject({
        status: 400,
        body: {
          code: 'invalid_policy_format',
          data: { issues: [{ pointer: '/rules/0/conditions/0/value' }] },
        },
      });
    },
  );

  test('a value that is spelled as no request has it is refused in a rule on the name of a function', async () => {
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
