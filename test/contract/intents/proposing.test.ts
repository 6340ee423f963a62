import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { attempt, call, refusal } from '../../support/call.ts';
import { intentEvents } from '../../support/intents.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messageRule, unknownId } from '../policies/rules.ts';
import { message, payment, worldOf } from './world.ts';

let sandbox: TestSandbox;
let world: ReturnType<typeof worldOf>;
beforeAll(async () => {
  sandbox = await startSandbox();
  world = worldOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const aliceAddress = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
let wallets = 0;
const HOURS_72_MS = 72 * 60 * 60_000;

/** Every proposing operation: its resource, the path of the request, a body, and the additional fields. */
const proposing = {
  updatePolicyIntent: async () => {
    const policy = await world.policy();
    return {
      type: 'POLICY',
      path: { policy_id: policy.id },
      method: 'PATCH',
      underlying: `policies/${policy.id}`,
      resourceId: policy.id,
      body: { name: 'Other' },
      shown: { current_resource_data: policy },
    };
  },
  createPolicyRuleIntent: async () => {
    const policy = await world.policy();
    return {
      type: 'RULE',
      path: { policy_id: policy.id },
      method: 'POST',
      underlying: `policies/${policy.id}/rules`,
      resourceId: policy.id,
      // A proposal may be incomplete.
      body: { name: 'Anything', conditions: [{ field_source: 'message', value: 'x' }] },
      shown: { policy },
    };
  },
  updatePolicyRuleIntent: async () => {
    const policy = await world.policy();
    const [rule] = policy.rules;
    return {
      type: 'RULE',
      path: { policy_id: policy.id, rule_id: rule!.id },
      method: 'PATCH',
      underlying: `policies/${policy.id}/rules/${rule!.id}`,
      resourceId: rule!.id,
      body: messageRule('other'),
      shown: { policy, current_resource_data: rule },
    };
  },
  deletePolicyRuleIntent: async () => {
    const policy = await world.policy();
    const [rule] = policy.rules;
    return {
      type: 'RULE',
      path: { policy_id: policy.id, rule_id: rule!.id },
      method: 'DELETE',
      underlying: `policies/${policy.id}/rules/${rule!.id}`,
      resourceId: rule!.id,
      body: undefined,
      shown: { policy, current_resource_data: rule },
    };
  },
  updateKeyQuorumIntent: async () => {
    const quorum = await world.quorum();
    return {
      type: 'KEY_QUORUM',
      path: { key_quorum_id: quorum.id },
      method: 'PATCH',
      underlying: `key_quorums/${quorum.id}`,
      resourceId: quorum.id,
      body: { authorization_threshold: 3 },
      shown: { current_resource_data: quorum },
    };
  },
  updateWalletIntent: async () => {
    const wallet = await world.wallet();
    return {
      type: 'WALLET',
      path: { wallet_id: wallet.id },
      method: 'PATCH',
      underlying: `wallets/${wallet.id}`,
      resourceId: wallet.id,
      body: { display_name: 'Cold' },
      shown: { current_resource_data: wallet },
    };
  },
  createWalletRpcIntent: async () => {
    wallets += 1;
    const wallet = await world.wallet({ external_id: `cold-${wallets}` });
    return {
      type: 'RPC',
      // The request always contains the wallet id, even if an external id was used.
      path: { wallet_id: `ext_wal_cold-${wallets}` },
      method: 'POST',
      underlying: `wallets/${wallet.id}/rpc`,
      resourceId: wallet.id,
      body: message('hello'),
      shown: { current_resource_data: wallet },
    };
  },
  createWalletTransferIntent: async () => {
    const wallet = await world.wallet();
    return {
      type: 'TRANSFER',
      path: { wallet_id: wallet.id },
      method: 'POST',
      underlying: `wallets/${wallet.id}/transfer`,
      resourceId: wallet.id,
      body: payment('250'),
      shown: { current_resource_data: wallet },
    };
  },
  addConditionSetItemsIntent: async () => {
    const set = await world.conditionSet();
    return {
      type: 'CONDITION_SET',
      path: { condition_set_id: set.id },
      method: 'POST',
      underlying: `condition_sets/${set.id}/condition_set_items`,
      resourceId: set.id,
      body: [{ value: 'a' }],
      shown: { current_resource_data: set },
    };
  },
  replaceConditionSetItemsIntent: async () => {
    const set = await world.conditionSet();
    return {
      type: 'CONDITION_SET',
      path: { condition_set_id: set.id },
      method: 'PUT',
      underlying: `condition_sets/${set.id}/condition_set_items`,
      resourceId: set.id,
      body: [{ value: 'a' }],
      shown: { current_resource_data: set },
    };
  },
} satisfies Partial<Record<OperationId, () => Promise<object>>>;

const operations = Object.keys(proposing) as (keyof typeof proposing)[];

describe.each(operations)('%s', (operation) => {
  const send = async (input: { path: object; body: unknown }, options: object = {}) => {
    const { status, body } = await attempt(sandbox, operation, input, options);
    expect(status, JSON.stringify(body)).toBe(200);
    return body as IntentResponse;
  };

  test('returns a pending intent, records its event, and changes nothing', async () => {
    const about = await proposing[operation]();
    const { type, path, method, underlying, resourceId, body, shown } = about;
    const expiryMs = sandbox.clock.now() + 5_000;
    const intent = await send({ path, body }, { expiryMs });
    const url = `${sandbox.baseUrl}/v1/${underlying}`;
    expect(intent).toEqual({
      intent_id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
      intent_type: type,
      status: 'pending',
      resource_id: resourceId,
      created_at: sandbox.clock.now(),
      created_by_display_name: 'API',
      custom_expiry: true,
      expires_at: expiryMs,
      authorization_details: [
        { display_name: 'Treasury', threshold: 2, members: expect.toSatisfy((all) => all.length === 3) },
      ],
      request_details: { method, url, ...(body === undefined ? {} : { body }) },
      ...shown,
    });
    expect((await call(sandbox, 'getIntent', { path: { intent_id: intent.intent_id } })).body).toEqual(
      intent,
    );
    expect(await intentEvents(sandbox, intent.intent_id)).toEqual([
      {
        type: 'intent.created',
        intent_id: intent.intent_id,
        intent_type: type,
        status: 'pending',
        created_at: intent.created_at,
        created_by_display_name: 'API',
        expires_at: expiryMs,
        authorization_details: intent.authorization_details,
      },
    ]);
    const plain = await send({ path, body });
    expect([plain.custom_expiry, plain.expires_at]).toEqual([false, sandbox.clock.now() + HOURS_72_MS]);
    const far = await send({ path, body }, { expiryMs: Number.MAX_SAFE_INTEGER });
    expect([far.custom_expiry, far.expires_at]).toEqual([true, 253_402_300_799_999]);
  });

  test('is refused for an absent resource and for one of another app', async () => {
    const { path, body } = await proposing[operation]();
    const other = await asOtherApp(sandbox);
    for (const [asker, ids] of [
      [sandbox, Object.fromEntries(Object.keys(path).map((name) => [name, unknownId]))],
      [other, path],
    ] as const) {
      expect((await refusal(asker, operation, { path: ids, body })).status).toBe(404);
    }
  });
});

test('a rule without conditions is proposed, as on the direct route', async () => {
  const rule = { ...messageRule('always'), conditions: [] };
  const path = { policy_id: (await world.policy()).id };
  const { body: intent } = await call(sandbox, 'createPolicyRuleIntent', { path, body: rule });
  expect(intent.request_details).toMatchObject({ method: 'POST', body: rule });
});

describe('a proposal is refused immediately', () => {
  const outcome = async (operation: OperationId, path: object, body?: unknown): Promise<string> => {
    const answer = await refusal(sandbox, operation, { path, body });
    return `${answer.status} ${answer.body.code} ${answer.body.error}`;
  };

  test('a proposal is refused immediately on a resource without an owner', async () => {
    const policy = await world.policy(['x'], {});
    const wallet = await world.wallet({ owner: null });
    const set = (await call(sandbox, 'createConditionSet', { body: { name: 'Free' } })).body;
    const refused = '400 invalid_request the resource has no owner who could authorize the intent';
    const rulePath = { policy_id: policy.id, rule_id: policy.rules[0]!.id };
    expect(await outcome('updatePolicyIntent', { policy_id: policy.id }, { name: 'x' })).toBe(refused);
    expect(await outcome('createPolicyRuleIntent', { policy_id: policy.id }, messageRule('x'))).toBe(refused);
    expect(await outcome('updatePolicyRuleIntent', rulePath, messageRule('x'))).toBe(refused);
    expect(await outcome('deletePolicyRuleIntent', rulePath)).toBe(refused);
    expect(await outcome('updateWalletIntent', { wallet_id: wallet.id }, { display_name: 'x' })).toBe(
      refused,
    );
    expect(await outcome('createWalletRpcIntent', { wallet_id: wallet.id }, message('x'))).toBe(refused);
    expect(await outcome('createWalletTransferIntent', { wallet_id: wallet.id }, payment('1'))).toBe(refused);
    for (const operation of ['addConditionSetItemsIntent', 'replaceConditionSetItemsIntent'] as const) {
      expect(await outcome(operation, { condition_set_id: set.id }, [{ value: 'a' }])).toBe(refused);
    }
  });

  test('a proposal is refused immediately with a body that the operation itself would refuse', async () => {
    const policy = await world.policy();
    const wallet = await world.wallet();
    const quorum = await world.quorum();
    const set = await world.conditionSet();
    const [policyPath, walletPath] = [{ policy_id: policy.id }, { wallet_id: wallet.id }];
    const nonsense = { ...messageRule('x'), method: 'signTransactionBytes' };
    const cases: [OperationId, object, unknown, RegExp][] = [
      ['updatePolicyIntent', policyPath, {}, /^400 invalid_data body: must have at least 1 property$/],
      ['updatePolicyIntent', policyPath, { owner_id: unknownId }, /^400 invalid_data /],
      ['updatePolicyIntent', policyPath, { rules: [nonsense] }, /^400 invalid_policy_format \/rules\/0/],
      ['createPolicyRuleIntent', policyPath, nonsense, /^400 invalid_policy_format \/method/],
      ['createPolicyRuleIntent', policyPath, { name: 'x' }, /^400 invalid_data \/conditions: is required$/],
      [
        'updatePolicyRuleIntent',
        { ...policyPath, rule_id: policy.rules[0]!.id },
        nonsense,
        /^400 invalid_policy_format \/method/,
      ],
      ['updatePolicyRuleIntent', { ...policyPath, rule_id: unknownId }, messageRule('x'), /^404 /],
      [
        'updateKeyQuorumIntent',
        { key_quorum_id: quorum.id },
        { authorization_threshold: 9 },
        /^400 invalid_data \/authorization_threshold/,
      ],
      ['updateWalletIntent', walletPath, { external_id: 'x' }, /^400 invalid_data \/external_id/],
      ['updateWalletIntent', walletPath, { policy_ids: [unknownId] }, /^400 invalid_data \/policy_ids\/0/],
      [
        'updateWalletIntent',
        walletPath,
        { owner_id: null, owner: { public_key: aliceKey.publicKey } },
        /^400 invalid_data \/owner_id/,
      ],
      ['createWalletRpcIntent', walletPath, { method: 'eth_unknown' }, /^400 invalid_data /],
      ['createWalletRpcIntent', walletPath, { method: 'signMessage', params: message('x').params }, /^400 /],
      ['createWalletTransferIntent', walletPath, payment('0'), /^400 invalid_data \/source\/amount/],
      [
        'createWalletTransferIntent',
        walletPath,
        payment('1', 'solana'),
        /^400 not_supported \/source\/chain/,
      ],
      [
        'createWalletTransferIntent',
        walletPath,
        { ...payment('1'), nonce: 'short' },
        /^400 invalid_data \/nonce/,
      ],
      [
        'createWalletRpcIntent',
        walletPath,
        { method: 'eth_signTransaction', params: { transaction: { to: '0x12', chain_id: 1 } } },
        /^400 invalid_data \/params\/transaction\/to: /,
      ],
      [
        'createWalletRpcIntent',
        walletPath,
        { method: 'eth_sendTransaction', caip2: 'eip155:1', params: { transaction: { value: '-1' } } },
        /^400 invalid_data \/params\/transaction\/value: /,
      ],
      [
        'createWalletRpcIntent',
        walletPath,
        { method: 'wallet_sendCalls', caip2: 'solana:1', params: { calls: [{ to: aliceAddress }] } },
        /^400 invalid_data \/caip2: /,
      ],
      [
        'addConditionSetItemsIntent',
        { condition_set_id: set.id },
        [{ value: '\ud800' }],
        /^400 invalid_data \/0/,
      ],
      [
        'updateWalletIntent',
        walletPath,
        { display_name: '\ud800' },
        /^400 invalid_data body: cannot be signed/,
      ],
    ];
    for (const [operation, path, body, expected] of cases) {
      expect(await outcome(operation, path, body), `${operation} ${JSON.stringify(body)}`).toMatch(expected);
    }
    const listed = await call(sandbox, 'listIntents', { query: { resource_id: policy.id } });
    expect(listed.body.data).toEqual([]);
  });

  test('a proposal is refused immediately for an archived wallet', async () => {
    const wallet = await world.wallet();
    await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
    expect(await outcome('createWalletRpcIntent', { wallet_id: wallet.id }, message('x'))).toMatch(/^404 /);
  });
});
