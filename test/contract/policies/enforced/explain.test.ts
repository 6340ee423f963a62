import { encodeFunctionData, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import type { Tables } from '../../../../src/domain/tables.ts';
import { call, refusal } from '../../../support/call.ts';
import { asOtherApp } from '../../../support/other-app.ts';
import { analysisResponse, analyzePolicies } from '../../../support/policy-analysis.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { makeRecipient } from '../../wallets/keys/hpke-client.ts';
import { allow, always, deny, hello, makePolicy, makeWallet, outcome, payment } from './policies.ts';

const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const thief = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const nowMs = Date.UTC(2026, 0, 1);
const toShop = { field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value: shop } as const;
const greeting = {
  field_source: 'message',
  field: 'content',
  operator: 'starts_with',
  value: 'hel',
} as const;

const tablesOf = async (sandbox: TestSandbox, ...tables: (keyof Tables)[]) => {
  await sandbox.services.uses.flush();
  const database = sandbox.database.orm.em.fork().getKysely<Tables>();
  const rows = await Promise.all(tables.map((table) => database.selectFrom(table).selectAll().execute()));
  return Object.fromEntries(tables.map((table, index) => [table, rows[index]]));
};

describe('the trace of a denial', () => {
  test('the trace of a denial is stored under the id in the refusal, and under the id of the request', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'ethereum', { rules: [allow('eth_signTransaction', toShop)] });
    const body = payment({ to: thief, value: 7 });
    const refused = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
    const { decision, trace_id } = refused.body.data as { decision: object; trace_id: string };
    const trace = await analyzePolicies(sandbox, 'getPolicyTrace', trace_id);
    expect(trace).toEqual({
      id: trace_id,
      app_id: sandbox.appId,
      wallet_id: wallet.id,
      operation: 'walletRpc',
      method: 'eth_signTransaction',
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      judged_at_ms: nowMs,
      decision: 'denied',
      policy_ids: wallet.policy_ids,
      request: body,
      policies: [decision],
    });
    expect(decision).toMatchObject({
      units: [
        {
          unit: 'transaction',
          rules: [
            {
              conditions: [
                {
                  value: shop,
                  observed: { state: 'present', values: [thief.toLowerCase()] },
                  result: 'false',
                },
              ],
            },
          ],
        },
      ],
    });
    expect(await analyzePolicies(sandbox, 'getPolicyTrace', trace.request_id)).toEqual(trace);
    expect(await analysisResponse(sandbox, 'getPolicyTrace', 'nowhere')).toEqual({
      status: 404,
      body: { error: 'Trace not found' },
    });
  });

  test('of a request with an idempotency key is stored each time, and not under the key', async () => {
    await using sandbox = await startSandbox();
    const wallet = await makeWallet(sandbox, 'ethereum', { rules: [] });
    const input = { path: { wallet_id: wallet.id }, body: hello };
    const ids = [];
    for (let time = 0; time < 2; time += 1) {
      const { body } = await refusal(sandbox, 'walletRpc', input, { idempotencyKey: 'once' });
      ids.push((body.data as { trace_id: string }).trace_id);
    }
    expect(new Set(ids).size).toBe(2);
    const { wallet_uses: uses, idempotency_records: answers } = await tablesOf(
      sandbox,
      'wallet_uses',
      'idempotency_records',
    );
    expect(uses).toMatchObject(ids.map((trace_id) => ({ trace_id, decision: 'denied' })));
    expect(answers).toEqual([]);
  });
});

test('a draft policy is evaluated, and the result contains all inputs', async () => {
  await using sandbox = await startSandbox();
  const policy = {
    chain_type: 'ethereum',
    rules: [
      { ...allow('eth_signTransaction', toShop), id: 'shop' },
      deny('eth_signTransaction', { ...toShop, field: 'value', operator: 'gt', value: '100' } as never),
      allow('personal_sign'),
    ],
  };
  const fee = { gas_limit: 21_000, max_fee_per_gas: 7, max_priority_fee_per_gas: 1 };
  const request = payment({ to: shop, value: '0x65', data: '0x00ff', ...fee });
  expect(await analyzePolicies(sandbox, 'explainPolicy', { policy, request })).toEqual({
    app_id: sandbox.appId,
    wallet_id: null,
    operation: 'walletRpc',
    judged_at_ms: nowMs,
    decision: 'denied',
    action: {
      method: 'eth_signTransaction',
      units: [
        {
          label: 'transaction',
          ethereumCall: { to: shop.toLowerCase(), value: '101', chainId: '1', data: '0x00ff' },
          fee: { gasLimit: '21000', pricePerGas: '7', most: '147000' },
        },
      ],
    },
    policies: [
      {
        policy_id: 'draft',
        allowed: false,
        recomputed: {
          allowed: false,
          units: [{ unit: 'transaction', outcome: 'denied_by_rule', deciding_rule_id: 'rule 1' }],
        },
        units: [
          {
            unit: 'transaction',
            outcome: 'denied_by_rule',
            deciding_rule_id: 'rule 1',
            fee: { gas_limit: '21000', price_per_gas: '7', most: '147000' },
            rules: [
              {
                rule_id: 'shop',
                rule_name: 'allow eth_signTransaction',
                action: 'ALLOW',
                method: 'eth_signTransaction',
                matched: true,
                conditions: [
                  { ...toShop, observed: { state: 'present', values: [shop.toLowerCase()] }, result: 'true' },
                ],
              },
              {
                rule_id: 'rule 1',
                rule_name: 'deny eth_signTransaction',
                action: 'DENY',
                method: 'eth_signTransaction',
                matched: true,
                conditions: [
                  {
                    field_source: 'ethereum_transaction',
                    field: 'value',
                    operator: 'gt',
                    value: '100',
                    observed: { state: 'present', values: ['101'] },
                    result: 'true',
                  },
                ],
              },
            ],
          },
        ],
        other_rules: [
          {
            rule_id: 'rule 2',
            rule_name: 'allow personal_sign',
            method: 'personal_sign',
            action: 'ALLOW',
          },
        ],
      },
    ],
  });
});

test('explaining signs, records, counts and stores nothing', async () => {
  await using sandbox = await startSandbox();
  const { body: aggregation } = await call(sandbox, 'createAggregation', {
    body: {
      name: 'Spent',
      method: 'eth_signTransaction',
      metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
      window: { type: 'rolling', seconds: 3600 },
    },
  });
  const cap = {
    field_source: 'reference',
    field: `aggregation.${aggregation.id}`,
    operator: 'lte',
    value: '100',
  } as const;
  const wallet = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('eth_signTransaction', cap as never)],
  });
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: payment({ value: 60 }) })).toBe('allowed');
  const tables = ['wallet_uses', 'aggregation_records', 'outbox_events', 'idempotency_records'] as const;
  const before = await tablesOf(sandbox, ...tables);
  expect(before).toMatchObject({ wallet_uses: [{}], aggregation_records: [{}] });
  const totals = [];
  for (const value of [40, 41, 40]) {
    const { decision, policies } = await analyzePolicies(sandbox, 'explainPolicy', {
      wallet_id: wallet.id,
      request: payment({ value }),
    });
    totals.push([decision, policies[0]!.units[0]!.rules[0]!.conditions[0]!.observed.values]);
  }
  expect(totals).toEqual([
    ['allowed', ['100']],
    ['denied', ['101']],
    ['allowed', ['100']],
  ]);
  // Another wallet has totals of its own, and a policy without a wallet has none.
  const { decision } = await analyzePolicies(sandbox, 'explainPolicy', {
    policy_id: wallet.policy_ids[0],
    request: payment({ value: 100 }),
  });
  expect(decision).toBe('allowed');
  expect(await tablesOf(sandbox, ...tables)).toEqual(before);
});

test('a wallet is evaluated under the policies of the owner or the signer', async () => {
  await using sandbox = await startSandbox();
  const own = await makePolicy(sandbox, 'ethereum', [allow('personal_sign', greeting as never)]);
  const signer = (await call(sandbox, 'createKeyQuorum', { body: { public_keys: [makeRecipient().spki] } }))
    .body.id;
  const wallet = await makeWallet(sandbox, 'ethereum', {
    rules: [deny('*')],
    additional_signers: [{ signer_id: signer, override_policy_ids: [own] }],
  });
  const explain = async (more: object) => {
    const { decision, policies } = await analyzePolicies(sandbox, 'explainPolicy', {
      wallet_id: wallet.id,
      request: hello,
      ...more,
    });
    return [decision, ...policies.map(({ policy_id }) => policy_id)];
  };
  expect(await explain({})).toEqual(['denied', wallet.policy_ids[0]]);
  expect(await explain({ signer_id: signer })).toEqual(['allowed', own]);
  const policy = { chain_type: 'ethereum', rules: [allow('*')] };
  expect(await explain({ policy })).toEqual(['allowed', 'draft']);
  const free = await makeWallet(sandbox, 'ethereum');
  expect(await explain({ wallet_id: free.id })).toEqual(['allowed']);
});

test('raw signatures and exports are explained as they are evaluated', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'cosmos', {
    rules: [allow('signRawMessageBytes', greeting as never), deny('exportPrivateKey')],
  });
  const raw = (message: string) => ({
    params: { bytes: Buffer.from(message).toString('hex'), encoding: 'hex', hash_function: 'sha256' },
  });
  const key = { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki };
  const decisions = [];
  for (const [operation, request] of [
    ['rawSignWallet', raw('hello')],
    ['rawSignWallet', raw('bye')],
    ['exportWallet', key],
  ] as const) {
    const explained = await analyzePolicies(sandbox, 'explainPolicy', {
      wallet_id: wallet.id,
      operation,
      request,
    });
    decisions.push([explained.action.method, explained.decision]);
    const answered = await outcome(sandbox, operation, { wallet, body: request });
    expect(answered).toBe(explained.decision === 'allowed' ? 'allowed' : '400 policy_violation');
  }
  expect(decisions).toEqual([
    ['signRawMessageBytes', 'allowed'],
    ['signRawMessageBytes', 'denied'],
    ['exportPrivateKey', 'denied'],
  ]);
});

test('transfers are explained as they are evaluated', async () => {
  await using sandbox = await startSandbox();
  const atMostTwo = {
    field_source: 'action_request_body',
    field: 'source.amount',
    operator: 'lte',
    value: '2',
  };
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [allow('transfer', atMostTwo as never)] });
  for (const [amount, decision] of [
    ['2', 'allowed'],
    ['2.1', 'denied'],
  ] as const) {
    const request = { source: { asset: 'usdc', chain: 'base' }, amount, destination: { address: shop } };
    const question = { wallet_id: wallet.id, operation: 'transferFromWallet', request };
    const explained = await analyzePolicies(sandbox, 'explainPolicy', question);
    expect([explained.action.method, explained.decision]).toEqual(['transfer', decision]);
    const path = { wallet_id: wallet.id };
    const { body } = await refusal(sandbox, 'transferFromWallet', { path, body: request });
    // The wallet is empty, which only callers who may transfer can learn.
    expect(body.code).toBe(decision === 'allowed' ? 'insufficient_funds' : 'policy_violation');
  }
});

test('an invalid question is refused with the position of the fault', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [] });
  const [policy_id] = wallet.policy_ids;
  const policy = { chain_type: 'ethereum', rules: [allow('personal_sign')] };
  const asked = { wallet_id: wallet.id, request: hello };
  const wrong = async (question: object) => {
    const { status, body } = await analysisResponse(sandbox, 'explainPolicy', question);
    const { error, code, data } = body as {
      error: string;
      code?: string;
      data?: { issues: { pointer: string }[] };
    };
    return [status, code ?? error, data?.issues.map(({ pointer }) => pointer)];
  };
  expect(await wrong({ request: hello })).toEqual([400, 'invalid_data', ['/policy']]);
  expect(await wrong({ ...asked, policy, policy_id })).toEqual([400, 'invalid_data', ['/policy_id']]);
  expect(await wrong({ ...asked, signer_id: 'unknown' })).toEqual([400, 'invalid_data', ['/signer_id']]);
  expect(await wrong({ ...asked, wallet_id: 'nothing' })).toEqual([404, 'Wallet not found', undefined]);
  expect(
    await wrong({
      ...asked,
      request: { method: 'personal_sign', params: { message: 1, encoding: 'utf-8' } },
    }),
  ).toEqual([400, 'invalid_data', expect.arrayContaining(['/request/params/message'])]);
  expect(
    await wrong({
      ...asked,
      request: { method: 'personal_sign', params: { message: 'xyz', encoding: 'hex' } },
    }),
  ).toEqual([400, 'invalid_data', ['/request/params/message']]);
  expect(await wrong({ ...asked, policy: { ...policy, chain_type: 'solana' } })).toEqual([
    400,
    'invalid_policy_format',
    ['/policy/rules/0/method'],
  ]);
  const unknown = [{ ...allow('personal_sign'), conditions: [{ ...always, field: 'hour' }] }];
  expect(await wrong({ ...asked, policy: { ...policy, rules: unknown } })).toEqual([
    400,
    'invalid_data',
    expect.arrayContaining([expect.stringMatching(/^\/policy\/rules\/0\/conditions\/0/)]),
  ]);
  await asOtherApp(sandbox);
  expect(await wrong({ policy, request: hello })).toEqual([400, 'invalid_data', ['/app_id']]);
  expect((await analyzePolicies(sandbox, 'explainPolicy', { ...asked })).app_id).toBe(sandbox.appId);
});

test('calldata is shown as bytes and as decoded for conditions', async () => {
  await using sandbox = await startSandbox();
  const abi = parseAbi(['function transfer(address to, uint256 amount)']);
  const data = encodeFunctionData({ abi, args: [shop, 2n ** 200n] });
  const condition = {
    field_source: 'ethereum_calldata',
    field: 'transfer.amount',
    operator: 'lte',
    value: '5',
    abi,
  };
  const explained = await analyzePolicies(sandbox, 'explainPolicy', {
    policy: { chain_type: 'ethereum', rules: [allow('eth_signTransaction', condition as never)] },
    request: payment({ to: shop, data }),
  });
  expect(explained.action.units).toMatchObject([{ ethereumCall: { data } }]);
  expect(explained.policies[0]!.units[0]!.rules[0]!.conditions[0]!.observed).toEqual({
    state: 'present',
    values: [String(2n ** 200n)],
  });
});
