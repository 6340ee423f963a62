import { encodeFunctionData, parseAbi } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CreatePolicyRequest } from '../../../src/generated/schemas.ts';
import { call } from '../../support/call.ts';
import { longestSlice, MAX_SLICE_MS } from '../../support/monitoring/longest-slice.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// The most that the rules of an app may ask for keeps the thread from no other app.
const ATTEMPTS = 20;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const list = <Item>(length: number, item: (index: number) => Item) =>
  Array.from({ length }, (_, index) => item(index));
const addressOf = (index: number) => `0x${index.toString(16).padStart(40, '0')}` as const;

type Rules = CreatePolicyRequest['rules'];
type Conditions = Rules[number]['conditions'];

/** The answer, and the shortest of the longest turns of a few attempts. */
async function measured(send: () => Promise<{ status: number }>) {
  let shortest = Number.POSITIVE_INFINITY;
  let status = 0;
  for (let attempt = 0; attempt < ATTEMPTS && shortest > MAX_SLICE_MS; attempt += 1) {
    const { result, longestMs } = await longestSlice(send);
    status = result.status;
    shortest = Math.min(shortest, longestMs);
  }
  return { status, isShort: shortest < MAX_SLICE_MS };
}

/** Sends a body without looking at the answer, which would take as long as making it. */
async function post(path: string, sent: object): Promise<{ status: number }> {
  const { appId, appSecret, baseUrl, dispatcher } = sandbox;
  const { statusCode: status, body } = await dispatcher.request({
    ...{ origin: baseUrl, path, method: 'POST', body: JSON.stringify(sent) },
    headers: {
      authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`,
      ...{ 'service-app-id': appId, 'content-type': 'application/json' },
    },
  });
  await body.dump();
  return { status };
}

const policyOf = (rules: Rules) => ({ version: '1.0', name: 'p', chain_type: 'ethereum', rules }) as const;
const create = (rules: Rules) => post('/v1/policies', policyOf(rules));

async function walletUnder(rules: Rules): Promise<string> {
  const { body } = await call(sandbox, 'createPolicy', { body: policyOf(rules) });
  const wallet = { chain_type: 'ethereum' as const, policy_ids: [body.id] };
  return (await call(sandbox, 'createWallet', { body: wallet })).body.id;
}

const rpc = (walletId: string, method: string, params: object) =>
  post(`/v1/wallets/${walletId}/rpc`, { method, params });

const rule = (method: string, action: 'ALLOW' | 'DENY', conditions: Conditions) =>
  ({ name: 'r', method, action, conditions }) as Rules[number];

test('one condition that looks for a long text in a longer one', async () => {
  const half = 'a'.repeat(100_000);
  const contains = { field_source: 'message', field: 'content', operator: 'contains' } as const;
  const found = { ...contains, value: `${half}b${half}` };
  const walletId = await walletUnder([rule('personal_sign', 'ALLOW', [found] as Conditions)]);
  const params = { message: 'a'.repeat(300_000), encoding: 'utf-8' };
  expect(await measured(() => rpc(walletId, 'personal_sign', params))).toEqual({
    status: 400,
    isShort: true,
  });
});

test('many conditions on what a long message contains', async () => {
  const contains = { field_source: 'message', field: 'content', operator: 'contains' } as const;
  const conditions = list(50, () => ({ ...contains, value: `${'a'.repeat(70)}b` })) as Conditions;
  const walletId = await walletUnder(list(100, () => rule('personal_sign', 'ALLOW', conditions)));
  const params = { message: 'a'.repeat(300_000), encoding: 'utf-8' };
  expect(await measured(() => rpc(walletId, 'personal_sign', params))).toEqual({
    status: 400,
    isShort: true,
  });
});

test('an explanation of a message under as many conditions as a policy can have', async () => {
  const content = { field_source: 'message', field: 'content', operator: 'eq' } as const;
  const conditions = list(50, (place) => ({ ...content, value: `a${place}` })) as Conditions;
  const walletId = await walletUnder(list(99, () => rule('personal_sign', 'ALLOW', conditions)));
  for (const length of [3_000, 5_000]) {
    const request = {
      method: 'personal_sign',
      params: { message: 'a'.repeat(length), encoding: 'utf-8' },
    };
    const explain = () => post('/_sandbox/policies/explain', { wallet_id: walletId, request });
    expect(await measured(explain)).toEqual({ status: 200, isShort: true });
  }
});

test('many types that a large message may contain', async () => {
  const method = 'eth_signTypedData_v4';
  const member = [{ name: 'a', type: 'uint8' }];
  const on = (index: number) => ({
    ...{ field_source: 'ethereum_typed_data_message', field: 'a', operator: 'eq', value: '1' },
    typed_data: { types: { W: member, [`Q${index}`]: [] }, primary_type: 'W' },
  });
  const denied = list(99, (index) =>
    rule(method, 'DENY', list(40, (place) => on(index * 40 + place)) as unknown as Conditions),
  );
  const walletId = await walletUnder([rule(method, 'ALLOW', []), ...denied]);
  const types = { Root: [{ name: 'n', type: 'N[]' }], N: [{ name: 'w', type: 'W[]' }], W: member };
  const message = { n: list(20_000, () => ({ w: [] })) };
  const params = { typed_data: { domain: { name: 'X' }, types, primary_type: 'Root', message } };
  expect(await measured(() => rpc(walletId, method, params))).toEqual({ status: 200, isShort: true });
});

const batch = parseAbi(['function executeBatch(address[] dest, bytes[] func)']);

function operation(calls: number): object {
  const args = [list(calls, addressOf), list(calls, () => '0x' as const)] as const;
  return {
    ...{ contract: '0x0000000071727De22E5E9d8BAf0edAc6f37da032', chain_id: 8453 },
    user_operation: {
      ...{ sender: addressOf(7), nonce: '0x1', call_data: encodeFunctionData({ abi: batch, args }) },
      ...{ call_gas_limit: '0x5208', verification_gas_limit: '0x186a0', pre_verification_gas: '0xc350' },
      ...{ max_fee_per_gas: '0x3b9aca00', max_priority_fee_per_gas: '0xf4240' },
    },
  };
}

test('members that a message leaves out', async () => {
  const method = 'eth_signTypedData_v4';
  const left = list(200, (index) => ({ name: `m${index}`, type: 'L' }));
  const types = { Root: [{ name: 'n', type: 'N[]' }], N: left, L: [] };
  const params = (nodes: number) => ({
    typed_data: {
      domain: { name: 'X' },
      types,
      primary_type: 'Root',
      message: { n: list(nodes, () => ({})) },
    },
  });
  const walletId = await walletUnder([rule(method, 'ALLOW', [])]);
  expect(await measured(() => rpc(walletId, method, params(4_000)))).toEqual({ status: 200, isShort: true });
  expect(await measured(() => rpc(walletId, method, params(6_000)))).toEqual({ status: 400, isShort: true });
});

test('a denial of many calls under many conditions', async () => {
  const method = 'eth_signUserOperation';
  const of = { field_source: 'ethereum_transaction' } as const;
  const conditions = [
    ...list(4, () => ({ ...of, field: 'value', operator: 'lt', value: `1${'0'.repeat(70)}` })),
    { ...of, field: 'to', operator: 'eq', value: addressOf(899) },
  ] as Conditions;
  const walletId = await walletUnder([
    rule(method, 'ALLOW', []),
    ...list(50, () => rule(method, 'DENY', conditions)),
  ]);
  const params = operation(900);
  expect(await measured(() => rpc(walletId, method, params))).toEqual({ status: 400, isShort: true });
});

test('many lists of values', async () => {
  const method = 'eth_signUserOperation';
  const among = (index: number) => ({
    ...{ field_source: 'ethereum_transaction', field: 'to', operator: 'in' },
    value: list(100, (place) => addressOf(1e9 + index * 100 + place)),
  });
  const denied = list(90, (index) =>
    rule(method, 'DENY', list(2, (place) => among(index * 2 + place)) as Conditions),
  );
  const walletId = await walletUnder([rule(method, 'ALLOW', []), ...denied]);
  const params = operation(900);
  expect(await measured(() => rpc(walletId, method, params))).toEqual({ status: 200, isShort: true });
});

test('many functions in the ABIs of a policy', async () => {
  // Parsed ABIs are kept, so each attempt has its own.
  let attempts = 0;
  const on = (index: number) => ({
    ...{ field_source: 'ethereum_calldata', field: 'function_name', operator: 'neq', value: 'f' },
    abi: list(10, (place) => ({ type: 'function', name: `f${attempts}_${index}_${place}`, inputs: [] })),
  });
  const withAbis = (rules: number) => {
    attempts += 1;
    return list(rules, (index) =>
      rule('eth_signTransaction', 'DENY', list(10, (place) => on(index * 10 + place)) as Conditions),
    );
  };
  expect(await measured(() => create(withAbis(20)))).toEqual({ status: 200, isShort: true });
  expect(await measured(() => create(withAbis(80)))).toEqual({ status: 400, isShort: true });
});

test('many conditions of many aggregations', async () => {
  const method = 'eth_signUserOperation';
  const below = { field_source: 'ethereum_transaction', field: 'value', operator: 'lt' };
  for (const name of list(10, (index) => `total ${index}`)) {
    const { status } = await call(sandbox, 'createAggregation', {
      body: {
        ...{ name, method, window: { type: 'rolling', seconds: 3600 } },
        metric: { field: 'value', field_source: 'ethereum_transaction', function: 'sum' },
        conditions: list(100, (index) => ({ ...below, value: String(10n ** 60n + BigInt(index)) })),
      } as never,
    });
    expect(status).toBe(200);
  }
  const { body } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  expect(await measured(() => rpc(body.id, method, operation(200)))).toEqual({ status: 200, isShort: true });
  expect(await measured(() => rpc(body.id, method, operation(900)))).toEqual({ status: 400, isShort: true });
});
