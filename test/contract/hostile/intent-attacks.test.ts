import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { attempt, call, refusal } from '../../support/call.ts';
import { authorize, readIntent, refusedSignature, signIntent } from '../../support/intents.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { alice, bob, boundKey, carol, logIn, message, worldOf } from '../intents/world.ts';
import { allow } from '../policies/enforced/policies.ts';
import { messageRule } from '../policies/rules.ts';

let sandbox: TestSandbox;
let world: ReturnType<typeof worldOf>;
beforeAll(async () => {
  sandbox = await startSandbox();
  world = worldOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const zero = '401 zero_correct_authorization_signatures';
const invalidState = '400 invalid_state';
const sole = async (key: { publicKey: string }) =>
  (await world.quorum({ public_keys: [key.publicKey], authorization_threshold: 1 })).id;

/** Sends a signature that was created for another purpose. */
async function replay(intent: IntentResponse, signature: string): Promise<string> {
  const { status, body } = await attempt(sandbox, 'authorizeIntent', {
    path: { intent_id: intent.intent_id },
    body: { signature, timestamp: sandbox.clock.now() },
  });
  const { code, status: state } = body as { code?: string; status?: string };
  return status === 200 ? String(state) : `${status} ${code}`;
}

describe('a signature is replayed', () => {
  test('a signature that covers the expiry of its intent does not count for another intent of the same request', async () => {
    const wallet = await world.wallet({ owner_id: await sole(aliceKey) });
    const expiryMs = sandbox.clock.now() + 60_000;
    const first = await world.proposeMessage(wallet.id, 'pay', { expiryMs });
    const signature = signIntent(sandbox, first, alice, { expiryMs });
    expect(await replay(first, signature)).toBe('executed');
    expect(await replay(first, signature)).toBe(invalidState);
    const again = await world.proposeMessage(wallet.id, 'pay');
    const later = await world.proposeMessage(wallet.id, 'pay', { expiryMs: expiryMs + 1 });
    for (const intent of [again, later]) expect(await replay(intent, signature)).toBe(zero);
    // For the direct request it is valid until the signed expiry, not longer.
    const direct = (options: object) =>
      attempt(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body: message('pay') }, options);
    const signed = { 'service-authorization-signature': signature };
    expect((await direct({ headers: signed })).status).toBe(401);
    sandbox.clock.set(expiryMs + 1);
    const late = await direct({ headers: signed, expiryMs });
    expect([late.status, (late.body as { code: string }).code]).toEqual([400, 'request_expired']);
  });

  test('a signature for a rule of one policy cannot add or replace rules of another', async () => {
    const owner = { owner_id: await sole(aliceKey) };
    const [policy, other] = [await world.policy(['a'], owner), await world.policy(['b'], owner)];
    const propose = async (id: string) =>
      (await call(sandbox, 'createPolicyRuleIntent', { path: { policy_id: id }, body: messageRule('c') }))
        .body;
    const intent = await propose(policy.id);
    const replacing = (
      await call(sandbox, 'updatePolicyRuleIntent', {
        path: { policy_id: policy.id, rule_id: policy.rules[0]!.id },
        body: messageRule('c'),
      })
    ).body;
    const signature = signIntent(sandbox, intent, alice);
    expect(await replay(await propose(other.id), signature)).toBe(zero);
    expect(await replay(replacing, signature)).toBe(zero);
  });

  test('the signature of the authorizing call does not count for the proposed request', async () => {
    const policy = await world.policy(['a'], { owner_id: await sole(aliceKey) });
    const { body: intent } = await call(sandbox, 'updatePolicyIntent', {
      path: { policy_id: policy.id },
      body: { name: 'New' },
    });
    const url = `${sandbox.baseUrl}/v1/intents/policies/${policy.id}`;
    const details = { ...intent.request_details, url } as IntentResponse['request_details'];
    expect(await replay(intent, signIntent(sandbox, { request_details: details }, alice))).toBe(zero);
  });
});

describe('the owner changes between proposal and execution', () => {
  test('an intent that was proposed under the previous owner cannot be executed', async () => {
    const policy = await world.policy(['a'], { owner_id: (await world.quorum()).id });
    const path = { policy_id: policy.id };
    const { body: rule } = await call(sandbox, 'createPolicyRuleIntent', { path, body: messageRule('all') });
    await authorize(sandbox, rule, alice);
    const owner_id = await sole(carolKey);
    await call(sandbox, 'updatePolicy', { path, body: { owner_id } }, { signWith: [alice, bob] });
    for (const key of [bob, carol]) expect(await refusedSignature(sandbox, rule, key)).toBe(invalidState);
    expect((await readIntent(sandbox, rule)).status).toBe('dismissed');
    // The first owner's signature no longer counts: only the new owner can authorize.
    const { body: second } = await call(sandbox, 'createPolicyRuleIntent', {
      path,
      body: messageRule('all'),
    });
    for (const key of [alice, bob]) expect(await refusedSignature(sandbox, second, key)).toBe(zero);
    expect((await authorize(sandbox, second, carol)).status).toBe('executed');
  });

  test('a removed signer cannot authorize pending intents', async () => {
    const wallet = await world.wallet({
      owner_id: await sole(aliceKey),
      additional_signers: [{ signer_id: await sole(carolKey) }],
    });
    const intent = await world.proposeMessage(wallet.id);
    await call(
      sandbox,
      'updateWallet',
      { path: { wallet_id: wallet.id }, body: { additional_signers: [] } },
      { signWith: [alice] },
    );
    expect(await refusedSignature(sandbox, intent, carol)).toBe(invalidState);
    expect(await refusedSignature(sandbox, await world.proposeMessage(wallet.id), carol)).toBe(zero);
  });

  test('a member of a nested key quorum who was removed does not count', async () => {
    const inner = await world.quorum({ public_keys: [aliceKey.publicKey], authorization_threshold: 1 });
    const outer = await world.quorum({
      public_keys: [bobKey.publicKey],
      key_quorum_ids: [inner.id],
      authorization_threshold: 2,
    });
    const policy = await world.policy(['a'], { owner_id: outer.id });
    const { body: intent } = await call(sandbox, 'updatePolicyIntent', {
      path: { policy_id: policy.id },
      body: { name: 'New' },
    });
    await authorize(sandbox, intent, alice);
    await call(
      sandbox,
      'updateKeyQuorum',
      { path: { key_quorum_id: inner.id }, body: { public_keys: [carolKey.publicKey] } },
      { signWith: [alice] },
    );
    expect((await authorize(sandbox, intent, bob)).status).toBe('pending');
    expect((await authorize(sandbox, intent, carol)).status).toBe('executed');
  });
});

describe('a policy is bypassed', () => {
  test('an additional signer cannot change the policy of the wallet, directly or by intent', async () => {
    const strict = await world.policy(['rent']);
    const lax = (
      await call(sandbox, 'createPolicy', {
        body: { version: '1.0', name: 'Lax', chain_type: 'ethereum', rules: [allow('*')] },
      })
    ).body;
    const wallet = await world.wallet({
      policy_ids: [strict.id],
      additional_signers: [{ signer_id: await sole(carolKey), override_policy_ids: [strict.id] }],
    });
    const input = { path: { wallet_id: wallet.id }, body: { policy_ids: [lax.id] } };
    const direct = await refusal(sandbox, 'updateWallet', input, { signWith: [carol] });
    expect(direct.status).toBe(401);
    const { body: intent } = await call(sandbox, 'updateWalletIntent', input);
    expect(intent.authorization_details).toHaveLength(1);
    expect((await authorize(sandbox, intent, carol)).status).toBe('pending');
    // Carol is one of three owners here, and one signature is not two.
    const own = { path: { wallet_id: wallet.id }, body: { additional_signers: [] } };
    expect((await refusal(sandbox, 'updateWallet', own, { signWith: [carol] })).status).toBe(401);
  });

  test('a proposed export is evaluated under the policy at execution', async () => {
    const policy = (
      await call(sandbox, 'createPolicy', {
        body: {
          version: '1.0',
          name: 'Exports',
          chain_type: 'ethereum',
          rules: [allow('exportPrivateKey')],
          owner_id: await sole(aliceKey),
        },
      })
    ).body;
    const wallet = await world.wallet({ owner_id: await sole(aliceKey), policy_ids: [policy.id] });
    const body = {
      method: 'exportPrivateKey',
      address: wallet.address,
      params: { encryption_type: 'HPKE', recipient_public_key: aliceKey.publicKey },
    } as const;
    const { body: intent } = await call(sandbox, 'createWalletRpcIntent', {
      path: { wallet_id: wallet.id },
      body,
    });
    await call(
      sandbox,
      'updatePolicy',
      { path: { policy_id: policy.id }, body: { rules: [] } },
      { signWith: [alice] },
    );
    expect(await authorize(sandbox, intent, alice)).toMatchObject({
      status: 'failed',
      action_result: { status_code: 400, response_body: { code: 'policy_violation' } },
    });
    const { body: kept } = await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } });
    expect(kept.exported_at).toBeNull();
  });
});

describe('a user’s key or token', () => {
  test('a key that is bound to an intent cannot send the proposed request directly', async () => {
    const [dora] = await logIn(sandbox, 1);
    const quorum = await world.quorum({ user_ids: [dora!.id] });
    const wallet = await world.wallet({ owner_id: quorum.id });
    const intent = await world.proposeMessage(wallet.id, 'pay');
    const twin = await world.proposeMessage(wallet.id, 'pay');
    const key = await boundKey(sandbox, dora!, [intent.intent_id]);
    const direct = await refusal(
      sandbox,
      'walletRpc',
      { path: { wallet_id: wallet.id }, body: message('pay') },
      { signWith: [key] },
    );
    expect(direct.status).toBe(401);
    expect(await refusedSignature(sandbox, twin, key)).toBe('401 no_valid_user_session_keys');
    expect((await authorize(sandbox, intent, key)).status).toBe('executed');
  });

  test('a user who left the key quorum can no longer see, sign or reject, whatever they signed before', async () => {
    const [dora] = await logIn(sandbox, 1);
    const quorum = await world.quorum({
      user_ids: [dora!.id],
      public_keys: [aliceKey.publicKey, bobKey.publicKey],
      authorization_threshold: 2,
    });
    const policy = await world.policy(['a'], { owner_id: quorum.id });
    const { body: intent } = await call(sandbox, 'updatePolicyIntent', {
      path: { policy_id: policy.id },
      body: { name: 'New' },
    });
    const key = await boundKey(sandbox, dora!, [intent.intent_id]);
    const asDora = { headers: dora!.headers };
    await authorize(sandbox, intent, key, {}, asDora);
    await call(
      sandbox,
      'updateKeyQuorum',
      { path: { key_quorum_id: quorum.id }, body: { user_ids: [] } },
      { signWith: [alice, bob] },
    );
    const path = { intent_id: intent.intent_id };
    for (const operation of ['getIntent', 'rejectIntent'] as const) {
      expect((await refusal(sandbox, operation, { path }, asDora)).status).toBe(404);
    }
    const signature = signIntent(sandbox, intent, key);
    const body = { signature, timestamp: sandbox.clock.now() };
    expect((await refusal(sandbox, 'authorizeIntent', { path, body }, asDora)).status).toBe(404);
    const query = { resource_id: policy.id };
    expect((await call(sandbox, 'listIntents', { query }, asDora)).body.data).toEqual([]);
    expect(await replay(intent, signature)).toBe(zero);
    // Both remaining members must sign; Dora's signature does not count.
    expect((await authorize(sandbox, intent, alice)).status).toBe('pending');
    expect((await authorize(sandbox, intent, bob)).status).toBe('executed');
  });
});

test.each([-1, 1.5, -(2 ** 53), 1e300, '1767225600000', null])(
  'a timestamp of %s is refused by name',
  async (timestamp) => {
    const policy = await world.policy(['a'], { owner_id: await sole(aliceKey) });
    const { body: intent } = await call(sandbox, 'updatePolicyIntent', {
      path: { policy_id: policy.id },
      body: { name: 'New' },
    });
    const { status, body } = await refusal(sandbox, 'authorizeIntent', {
      path: { intent_id: intent.intent_id },
      body: { signature: signIntent(sandbox, intent, alice), timestamp },
    } as never);
    expect([status, body.code, body.error]).toEqual([
      400,
      'invalid_data',
      expect.stringMatching(/^\/timestamp: /),
    ]);
  },
);
