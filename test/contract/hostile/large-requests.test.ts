import { encodeFunctionData, pad, parseAbi, toHex } from 'viem';
import { beforeAll, describe, expect, test } from 'vitest';
import { attempt, call } from '../../support/call.ts';
import { analysisResponse, analyzePolicies } from '../../support/policy-analysis.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { allow, deny, makeWallet, payment, type Rule } from '../policies/enforced/policies.ts';

// A request of less than a megabyte under the largest possible policy: it must neither block other requests,
// nor fail with 500 because its trace is too long for a string.
const other = '0x00000000000000000000000000000000000000AA' as const;
const account = parseAbi(['function executeBatch(address[] dest, uint256[] value, bytes[] func)']);

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  return () => sandbox[Symbol.asyncDispose]();
});

type Condition = Rule['conditions'][number];

const conditions = (count: number, make: (index: number) => object) =>
  Array.from({ length: count }, (_, index) => make(index) as Condition);
const largest = (method: Rule['method'], make: (index: number) => object) =>
  Array.from({ length: 100 }, () => allow(method, ...conditions(50, make)));
const below = (index: number) => ({
  field_source: 'ethereum_transaction',
  field: 'value',
  operator: 'lte',
  value: String(index + 1),
});
const batch = (calls: number) =>
  payment({
    type: 118,
    nonce: 0,
    gas_limit: 1,
    calls: Array.from({ length: calls }, () => ({ to: other, value: '0x1' })),
  });

async function judge(wallet: { id: string }, body: object) {
  const answer = await attempt(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  const reported = answer.body as { code?: string; error?: string; data?: Record<string, unknown> };
  return { status: answer.status, code: reported.code, error: reported.error, data: reported.data };
}

describe('under 100 rules of 50 conditions', () => {
  test('a batch of 35 calls is evaluated, one of 51 is refused with a reason', async () => {
    const wallet = await makeWallet(sandbox, 'ethereum', { rules: largest('eth_signTransaction', below) });
    expect((await judge(wallet, batch(35))).status).toBe(200);
    for (const calls of [51, 100]) {
      expect(await judge(wallet, batch(calls))).toMatchObject({
        status: 400,
        code: 'invalid_data',
        error: expect.stringContaining('/params: asks for more than 250000 comparisons'),
      });
    }
    expect(
      await analysisResponse(sandbox, 'explainPolicy', { wallet_id: wallet.id, request: batch(51) }),
    ).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringContaining('/request/params: asks for more') },
    });
  });

  test('a long message is denied, and its trace is shortened to the deciding part', async () => {
    const contains = (index: number) => ({
      field_source: 'message',
      field: 'content',
      operator: 'contains',
      value: `never ${index}`,
    });
    const rules = [...largest('personal_sign', contains).slice(1), deny('personal_sign')];
    const wallet = await makeWallet(sandbox, 'ethereum', { rules });
    const sign = (length: number) => ({
      ...{ method: 'personal_sign', params: { encoding: 'utf-8', message: 'a'.repeat(length) } },
    });
    const { status, code, data } = await judge(wallet, sign(400));
    expect([status, code]).toEqual([400, 'policy_violation']);
    expect((await judge(wallet, sign(300_000))).code).toBe('invalid_data');
    const decision = data!.decision as { units: { rules: { conditions: object[] }[] }[] };
    const denied = decision.units[0]!.rules.at(-1)!;
    expect(decision).toMatchObject({
      allowed: false,
      units: [{ unit: 'message', outcome: 'denied_by_rule' }],
    });
    expect(denied).toMatchObject({ action: 'DENY', matched: true, conditions: [{ result: 'true' }] });
    expect(decision.units[0]!.rules).toHaveLength(100);
    expect(decision.units[0]!.rules[0]).toMatchObject({
      matched: false,
      conditions: [
        {
          value: 'never 0',
          result: 'false',
          observed: { state: 'present', values: [`${'a'.repeat(200)}…`] },
        },
      ],
    });
    const trace = await analyzePolicies(sandbox, 'getPolicyTrace', String(data!.trace_id));
    expect(trace.policies).toEqual([decision]);
    const explained = await analysisResponse(sandbox, 'explainPolicy', {
      wallet_id: wallet.id,
      request: sign(300_000),
    });
    expect(explained).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  });

  test('an array of thousands of numbers is refused with a reason', async () => {
    const abi = parseAbi(['function pay(uint256[] amounts)']);
    const rules = largest('eth_signTransaction', () => ({
      field_source: 'ethereum_calldata',
      field: 'pay.amounts',
      operator: 'lte',
      value: '5',
      abi,
    }));
    const wallet = await makeWallet(sandbox, 'ethereum', { rules: rules.slice(0, 10) });
    const pay = (count: number) =>
      payment({
        to: other,
        data: encodeFunctionData({ abi, args: [Array.from({ length: count }, () => 5n)] }),
      });
    expect((await judge(wallet, pay(500))).status).toBe(200);
    expect(await judge(wallet, pay(4000))).toMatchObject({ status: 400, code: 'invalid_data' });
  });
});

describe('running totals', () => {
  const makeCounted = async () => {
    const { body: aggregation } = await call(sandbox, 'createAggregation', {
      body: {
        name: 'paid to each',
        method: 'eth_signUserOperation',
        metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
        group_by: [{ field_source: 'ethereum_transaction', field: 'to' }],
        window: { type: 'rolling', seconds: 3600 },
      },
    });
    return aggregation;
  };
  const operationOf = (to: readonly `0x${string}`[]) => ({
    method: 'eth_signUserOperation',
    params: {
      contract: '0x0000000071727De22E5E9d8BAf0edAc6f37da032',
      chain_id: 1,
      user_operation: {
        sender: other,
        nonce: '0x0',
        call_data: encodeFunctionData({
          abi: account,
          args: [to, to.map(() => 1n), to.map(() => '0x' as const)],
        }),
        call_gas_limit: '0x1',
        verification_gas_limit: '0x1',
        pre_verification_gas: '0x1',
        max_fee_per_gas: '0x1',
        max_priority_fee_per_gas: '0x1',
      },
    },
  });
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, index) => pad(toHex(index + 1), { size: 20 }));

  test('count up to 1,000 calls of a request, in up to 500 groups', async () => {
    const wallet = await makeWallet(sandbox, 'ethereum');
    expect((await judge(wallet, operationOf(addresses(1001)))).status).toBe(200);
    const aggregation = await makeCounted();
    expect((await judge(wallet, operationOf(addresses(500)))).status).toBe(200);
    expect(await judge(wallet, operationOf(addresses(501)))).toMatchObject({
      status: 400,
      code: 'invalid_data',
      error: expect.stringContaining('at most 500 groups'),
    });
    const same = (count: number) => Array.from({ length: count }, () => other);
    expect((await judge(wallet, operationOf(same(1000)))).status).toBe(200);
    expect(await judge(wallet, operationOf(same(1001)))).toMatchObject({
      status: 400,
      code: 'invalid_data',
      error: expect.stringContaining('at most 1000 calls'),
    });
    await call(sandbox, 'deleteAggregation', { path: { aggregation_id: aggregation.id } });
  });
});
