import { encodeFunctionData, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import { acmeWallet } from '../../../../mocks/wallets.ts';
import type { CreateAggregationRequest } from '../../../../src/generated/schemas.ts';
import { call, refusal } from '../../../support/call.ts';
import { databaseKinds } from '../../../support/databases.ts';
import { openOperations } from '../../../support/run-operations.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { allow, allowed, denied, deny, makeWallet, outcome, payment, type Rule } from './policies.ts';

const hourSeconds = 3600;
const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const other = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const spent = {
  name: 'Spent in an hour',
  method: 'eth_signTransaction',
  metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
  window: { type: 'rolling', seconds: hourSeconds },
} as const satisfies CreateAggregationRequest;

const below = (id: string, cap: bigint | number, operator = 'lte') =>
  ({
    field_source: 'reference',
    field: `aggregation.${id}`,
    operator,
    value: String(cap),
  }) as Rule['conditions'][number];

async function capped(sandbox: TestSandbox, cap: bigint | number, more: object = {}) {
  const body = { ...spent, ...more } as CreateAggregationRequest;
  const { body: aggregation } = await call(sandbox, 'createAggregation', { body });
  const rules = [
    allow('eth_signTransaction', below(aggregation.id, cap)),
    allow('eth_signUserOperation', below(aggregation.id, cap)),
  ];
  return { aggregation, wallet: await makeWallet(sandbox, 'ethereum', { rules }), rules };
}

const hex = (value: bigint | number) => `0x${value.toString(16)}`;
const payIn =
  (sandbox: TestSandbox, wallet: { id: string }) =>
  (value: bigint | number, fields: object = {}) =>
    outcome(sandbox, 'walletRpc', { wallet, body: payment({ to: shop, value: hex(value), ...fields }) });

test('the total contains everything signed within the window and the current request', async () => {
  await using sandbox = await startSandbox();
  const { wallet } = await capped(sandbox, 100);
  const pay = payIn(sandbox, wallet);
  expect(await pay(60)).toBe(allowed);
  sandbox.clock.advance(10 * 60_000);
  // What is denied is not counted.
  expect(await pay(41)).toBe(denied);
  expect(await pay(40)).toBe(allowed);
  expect(await pay(1)).toBe(denied);
  expect(await pay(0)).toBe(allowed);
  // An hour after the first, to the millisecond.
  sandbox.clock.advance(50 * 60_000 - 1);
  expect(await pay(1)).toBe(denied);
  sandbox.clock.advance(1);
  expect(await pay(61)).toBe(denied);
  expect(await pay(60)).toBe(allowed);
  sandbox.clock.advance(hourSeconds * 1000);
  expect(await pay(100)).toBe(allowed);
  expect(await pay(1)).toBe(denied);
});

test('sums beyond 64 bits are exact to the last wei', async () => {
  await using sandbox = await startSandbox();
  const cap = 3n * 2n ** 200n;
  const { wallet } = await capped(sandbox, cap);
  const pay = payIn(sandbox, wallet);
  expect(await pay(2n ** 201n)).toBe(allowed);
  expect(await pay(2n ** 200n - 1n)).toBe(allowed);
  expect(await pay(2n)).toBe(denied);
  expect(await pay(1n)).toBe(allowed);
  expect(await pay(1n)).toBe(denied);
});

test('totals are separate per wallet and per group', async () => {
  await using sandbox = await startSandbox();
  const group_by = [{ field_source: 'ethereum_transaction', field: 'to' }];
  const { wallet, rules } = await capped(sandbox, 100, { group_by });
  const second = await makeWallet(sandbox, 'ethereum', { rules });
  const [pay, paySecond] = [payIn(sandbox, wallet), payIn(sandbox, second)];
  expect(await pay(100)).toBe(allowed);
  expect(await pay(1, { to: shop.toLowerCase() })).toBe(denied);
  expect(await pay(100, { to: other })).toBe(allowed);
  expect(await pay(1, { to: other })).toBe(denied);
  expect(await paySecond(100)).toBe(allowed);
  // The cap applies to the highest total among the groups of a batch, with all of its calls.
  const third = await makeWallet(sandbox, 'ethereum', { rules });
  const batch = (...values: [string, number][]) =>
    outcome(sandbox, 'walletRpc', {
      wallet: third,
      body: payment({ type: 118, calls: values.map(([to, value]) => ({ to, value })) }),
    });
  expect(await batch([shop, 60], [shop, 41])).toBe(denied);
  expect(await batch([shop, 60], [other, 60])).toBe(allowed);
  expect(await batch([shop, 40], [other, 41])).toBe(denied);
  expect(await batch([shop, 40], [other, 40])).toBe(allowed);
});

test('the metric can be an argument of the call, and conditions select what counts', async () => {
  await using sandbox = await startSandbox();
  const abi = parseAbi(['function transfer(address to, uint256 amount)']);
  const { wallet } = await capped(sandbox, 100, {
    metric: { field_source: 'ethereum_calldata', field: 'transfer.amount', function: 'sum', abi },
    conditions: [{ field_source: 'ethereum_transaction', field: 'chain_id', operator: 'eq', value: '1' }],
  });
  const pay = payIn(sandbox, wallet);
  const transfer = (amount: bigint, fields: object = {}) =>
    pay(0, { data: encodeFunctionData({ abi, args: [shop, amount] }), ...fields });
  expect(await transfer(100n)).toBe(allowed);
  expect(await transfer(1n)).toBe(denied);
  // On another chain, so it is not counted.
  expect(await transfer(1000n, { chain_id: 10 })).toBe(allowed);
  // What is no transfer adds nothing.
  expect(await pay(5, { data: '0x12345678' })).toBe(allowed);
  expect(await transfer(1n)).toBe(denied);
});

test('a negative metric does not lower the total', async () => {
  await using sandbox = await startSandbox();
  const abi = parseAbi(['function adjust(int256 by)']);
  const metric = { field_source: 'ethereum_calldata', field: 'adjust.by', function: 'sum', abi };
  const { wallet } = await capped(sandbox, 100, { metric });
  const adjust = (by: bigint) => payIn(sandbox, wallet)(0, { data: encodeFunctionData({ abi, args: [by] }) });
  expect(await adjust(100n)).toBe(allowed);
  expect(await adjust(-100n)).toBe(allowed);
  expect(await adjust(1n)).toBe(denied);
});

test('user operations have separate totals', async () => {
  await using sandbox = await startSandbox();
  const { wallet } = await capped(sandbox, 100, { method: 'eth_signUserOperation' });
  const account = parseAbi(['function execute(address dest, uint256 value, bytes func)']);
  const operate = (value: bigint) => {
    const call_data = encodeFunctionData({ abi: account, args: [shop, value, '0x'] });
    const gas = { call_gas_limit: '0x1', verification_gas_limit: '0x1', pre_verification_gas: '0x1' };
    const fees = { max_fee_per_gas: '0x1', max_priority_fee_per_gas: '0x1' };
    const params = {
      contract: '0x0000000071727De22E5E9d8BAf0edAc6f37da032',
      ...{ chain_id: 1, user_operation: { sender: other, nonce: '0x0', call_data, ...gas, ...fees } },
    };
    return outcome(sandbox, 'walletRpc', { wallet, body: { method: 'eth_signUserOperation', params } });
  };
  expect(await operate(60n)).toBe(allowed);
  expect(await operate(41n)).toBe(denied);
  expect(await payIn(sandbox, wallet)(1000)).toBe(allowed);
  expect(await operate(40n)).toBe(allowed);
});

test('a deleted aggregation allows nothing and lifts no cap', async () => {
  await using sandbox = await startSandbox();
  const { wallet, aggregation } = await capped(sandbox, 100);
  const free = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('*'), deny('eth_signTransaction', below(aggregation.id, 100, 'gt'))],
  });
  expect(await payIn(sandbox, free)(101)).toBe(denied);
  await call(sandbox, 'deleteAggregation', { path: { aggregation_id: aggregation.id } });
  expect(await payIn(sandbox, wallet)(1)).toBe(denied);
  expect(await payIn(sandbox, free)(1)).toBe(denied);
});

test('requests that fail are not counted', async () => {
  await using sandbox = await startSandbox();
  const { wallet } = await capped(sandbox, 100);
  const pay = payIn(sandbox, wallet);
  expect(await pay(100, { nonce: -1 })).toBe('400 invalid_data');
  expect(await pay(100, { from: other })).toBe('400 invalid_data');
  expect(await pay(100)).toBe(allowed);
});

test('a replay under an idempotency key counts once', async () => {
  await using sandbox = await startSandbox();
  const { wallet } = await capped(sandbox, 100);
  const sent = { wallet, body: payment({ value: 60 }), idempotencyKey: 'once' };
  for (let time = 0; time < 3; time += 1) expect(await outcome(sandbox, 'walletRpc', sent)).toBe(allowed);
  expect(await payIn(sandbox, wallet)(40)).toBe(allowed);
});

test('conditions of an aggregation cannot use condition sets', async () => {
  await using sandbox = await startSandbox();
  const { body: set } = await call(sandbox, 'createConditionSet', { body: { name: 'Shops' } });
  const conditions = [
    { field_source: 'ethereum_transaction', field: 'to', operator: 'in_condition_set', value: set.id },
  ];
  const answer = await refusal(sandbox, 'createAggregation', { body: { ...spent, conditions } });
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_aggregation_format' } });
});

test('of concurrent requests over HTTPS only those under the cap pass', async () => {
  await using sandbox = await startSandbox();
  const { wallet } = await capped(sandbox, 100);
  const pay = payIn(sandbox, wallet);
  const answers = await Promise.all(Array.from({ length: 12 }, () => pay(30)));
  expect(answers.filter((answer) => answer === allowed)).toHaveLength(3);
  expect(answers.filter((answer) => answer === denied)).toHaveLength(9);
});

describe.each(databaseKinds)('on %s', (kind) => {
  test('of concurrent requests exactly those under the cap pass', async () => {
    await using operations = await openOperations(kind);
    const made = async (id: 'createAggregation' | 'createPolicy' | 'createWallet', body: object) => {
      const { status, body: answer } = await operations.run(id, { body });
      expect(status).toBe(200);
      return answer as { id: string };
    };
    const aggregation = await made('createAggregation', spent);
    const rules = [allow('eth_signTransaction', below(aggregation.id, 100))];
    const policy = await made('createPolicy', { version: '1.0', name: 'Cap', chain_type: 'ethereum', rules });
    for (let round = 0; round < 5; round += 1) {
      const { external_id: _, ...fields } = acmeWallet;
      const wallet = await made('createWallet', { ...fields, policy_ids: [policy.id] });
      const pay = (value: number) =>
        operations.run('walletRpc', { path: { wallet_id: wallet.id }, body: payment({ to: shop, value }) });
      const two = await Promise.all([pay(60), pay(60)]);
      expect(two.map(({ status }) => status).sort()).toEqual([200, 400]);
      const many = await Promise.all(Array.from({ length: 8 }, () => pay(20)));
      expect(many.filter(({ status }) => status === 200)).toHaveLength(2);
      expect(many.filter(({ status }) => status === 400)).toHaveLength(6);
    }
  });
});
