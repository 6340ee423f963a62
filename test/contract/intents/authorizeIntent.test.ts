import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import {
  authorizationOf,
  authorize,
  intentEvents,
  readIntent,
  refusedSignature,
  signIntent,
} from '../../support/intents.ts';
import { asOtherApp, configureUser } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messageRule } from '../policies/rules.ts';
import { alice, bob, boundKey, carol, logIn, treasury, worldOf } from './world.ts';

let sandbox: TestSandbox;
let world: ReturnType<typeof worldOf>;
beforeAll(async () => {
  sandbox = await startSandbox({ publicUrls: ['https://wallets.example.com/tenant'] });
  world = worldOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const zero = '401 zero_correct_authorization_signatures';
const sole = async (publicKey: string) =>
  (await world.quorum({ public_keys: [publicKey], authorization_threshold: 1 })).id;
const propose = async (operation: 'updatePolicyIntent', policyId: string, name: string, expiryMs?: number) =>
  (
    await call(
      sandbox,
      operation,
      { path: { policy_id: policyId }, body: { name } },
      expiryMs === undefined ? {} : { expiryMs },
    )
  ).body;
const nameOf = async (policyId: string) =>
  (await call(sandbox, 'getPolicy', { path: { policy_id: policyId } })).body.name;

describe('a signature of the proposed request', () => {
  test('a signature of the proposed request counts only with the expiry that the intent was created with', async () => {
    const policy = await world.policy();
    const expiryMs = sandbox.clock.now() + 60_000;
    const intent = await propose('updatePolicyIntent', policy.id, 'New', expiryMs);
    expect(await refusedSignature(sandbox, intent, alice, { expiryMs: expiryMs + 1 })).toBe(zero);
    // Without an expiry it would also be valid for a direct request, and for a second intent.
    expect(await refusedSignature(sandbox, intent, alice, { expiryMs: null })).toBe(zero);
    expect((await authorize(sandbox, intent, alice, { expiryMs })).status).toBe('pending');
    expect((await authorize(sandbox, intent, bob, { expiryMs })).status).toBe('executed');
    expect(await nameOf(policy.id)).toBe('New');
  });

  test('a signature of the proposed request counts under every URL of the server, and under no other', async () => {
    const policy = await world.policy();
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const { url } = intent.request_details;
    expect(url).toBe(`${sandbox.baseUrl}/v1/policies/${policy.id}`);
    const under = (base: string) => ({
      ...intent,
      request_details: { ...intent.request_details, url: `${base}/v1/policies/${policy.id}` },
    });
    expect(await refusedSignature(sandbox, under('https://evil.example.com') as typeof intent, alice)).toBe(
      zero,
    );
    await authorize(sandbox, under('https://wallets.example.com/tenant') as typeof intent, alice);
    expect((await authorize(sandbox, intent, bob)).status).toBe('executed');
  });

  test('sent twice has no effect and records no event', async () => {
    const policy = await world.policy();
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const once = await authorize(sandbox, intent, alice);
    sandbox.clock.advance(1_000);
    expect(await authorize(sandbox, intent, alice)).toEqual(once);
    expect((await intentEvents(sandbox, intent.intent_id)).map(({ type }) => type)).toEqual([
      'intent.created',
      'intent.authorized',
    ]);
  });

  test('a signature of the proposed request is recorded as an event with its member and the result', async () => {
    const policy = await world.policy();
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const summary = {
      intent_id: intent.intent_id,
      intent_type: 'POLICY',
      created_at: intent.created_at,
      created_by_display_name: 'API',
      expires_at: intent.expires_at,
    };
    const signedAtMs = sandbox.clock.now() - 10_000;
    await authorize(sandbox, intent, alice, { timestamp: signedAtMs });
    const { action_result: result } = await authorize(sandbox, intent, bob);
    expect(result).toEqual({
      status_code: 200,
      executed_at: sandbox.clock.now(),
      authorized_by_id: policy.owner_id,
      authorized_by_display_name: 'Treasury',
      response_body: { ...policy, name: 'New' },
      prior_state: policy,
    });
    const [, first, , executed] = await intentEvents(sandbox, intent.intent_id);
    expect(first).toEqual({
      type: 'intent.authorized',
      ...summary,
      status: 'pending',
      authorized_at: sandbox.clock.now(),
      member: { type: 'key', public_key: aliceKey.publicKey, signed_at: signedAtMs },
    });
    expect(executed).toEqual({
      type: 'intent.executed',
      ...summary,
      status: 'executed',
      action_result: result,
    });
  });
});

describe('a signature is refused', () => {
  test('of keys that are not members, with the expected payload', async () => {
    const policy = await world.policy(['x'], { owner_id: await sole(aliceKey.publicKey) });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const input = authorizationOf(sandbox, intent, carol);
    const answer = await refusal(sandbox, 'authorizeIntent', input);
    expect(answer).toMatchObject({
      status: 401,
      body: {
        code: 'zero_correct_authorization_signatures',
        data: {
          signature_check: {
            signatures: [{ index: 0, verified: false }],
            parties: [{ role: 'owner', key_quorum_id: policy.owner_id, missing: 1 }],
          },
        },
      },
    });
    for (const signature of ['AAAA', 'not base64', ' ']) {
      const body = { signature, timestamp: sandbox.clock.now() };
      const refused = await refusal(sandbox, 'authorizeIntent', { path: input.path, body });
      expect(refused.status).toBe(401);
    }
    expect((await readIntent(sandbox, intent)).authorization_details[0]!.members).toEqual([
      { type: 'key', public_key: aliceKey.publicKey, signed_at: null },
    ]);
  });

  test('of another body, another resource, another method and another app', async () => {
    const policy = await world.policy(['x'], { owner_id: await sole(aliceKey.publicKey) });
    const other = await world.policy(['x'], { owner_id: policy.owner_id! });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const forged = [
      { ...intent.request_details, body: { name: 'Newer' } },
      (await propose('updatePolicyIntent', other.id, 'New')).request_details,
      { ...intent.request_details, method: 'POST' },
    ] as IntentResponse['request_details'][];
    for (const details of forged) {
      const signature = signIntent(sandbox, { request_details: details }, alice);
      const { status, body } = await refusal(sandbox, 'authorizeIntent', {
        path: { intent_id: intent.intent_id },
        body: { signature, timestamp: sandbox.clock.now() },
      });
      expect(`${status} ${body.code}`).toBe(zero);
    }
    const stranger = await asOtherApp(sandbox);
    const foreign = await refusal(stranger, 'authorizeIntent', authorizationOf(sandbox, intent, alice));
    expect(foreign).toEqual({ status: 404, body: { error: 'Intent not found' } });
    expect((await refusal(stranger, 'getIntent', { path: { intent_id: intent.intent_id } })).status).toBe(
      404,
    );
    expect((await refusal(stranger, 'rejectIntent', { path: { intent_id: intent.intent_id } })).status).toBe(
      404,
    );
    expect((await authorize(sandbox, intent, alice)).status).toBe('executed');
    expect(await nameOf(policy.id)).toBe('New');
  });

  test('a signature with a timestamp of the future is refused', async () => {
    const policy = await world.policy();
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const timestamp = sandbox.clock.now() + 5 * 60_000;
    const input = authorizationOf(sandbox, intent, alice, { timestamp: timestamp + 1 });
    expect((await refusal(sandbox, 'authorizeIntent', input)).body).toMatchObject({
      code: 'invalid_data',
      error: expect.stringMatching(/^\/timestamp: is in the future/),
    });
    expect((await authorize(sandbox, intent, alice, { timestamp })).status).toBe('pending');
  });

  test.each([
    [
      'executed',
      (intent: IntentResponse) =>
        authorize(sandbox, intent, bob).then(() => authorize(sandbox, intent, carol)),
    ],
    [
      'rejected',
      (intent: IntentResponse) => call(sandbox, 'rejectIntent', { path: { intent_id: intent.intent_id } }),
    ],
  ])('once the intent is %s', async (status, decide) => {
    const intent = await propose('updatePolicyIntent', (await world.policy()).id, 'New');
    await decide(intent);
    expect((await readIntent(sandbox, intent)).status).toBe(status);
    expect(await refusedSignature(sandbox, intent, alice)).toBe('400 invalid_state');
    const again = await refusal(sandbox, 'rejectIntent', { path: { intent_id: intent.intent_id } });
    expect(again.body).toEqual({
      code: 'invalid_state',
      error: `the intent cannot be authorized or rejected: it is ${status}`,
    });
  });
});

describe('eligible members are those of the current key quorum', () => {
  test('a removed member no longer counts, an added one does', async () => {
    const quorum = await world.quorum();
    const policy = await world.policy(['x'], { owner_id: quorum.id });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    await authorize(sandbox, intent, alice);
    const change = { public_keys: [bobKey.publicKey, carolKey.publicKey] };
    await call(
      sandbox,
      'updateKeyQuorum',
      { path: { key_quorum_id: quorum.id }, body: change },
      { signWith: [alice, bob] },
    );
    expect(await refusedSignature(sandbox, intent, alice)).toBe(zero);
    const half = await authorize(sandbox, intent, bob);
    expect(half.status).toBe('pending');
    expect(half.authorization_details).toMatchObject([
      {
        members: [
          { public_key: bobKey.publicKey, signed_at: sandbox.clock.now() },
          { public_key: carolKey.publicKey, signed_at: null },
        ],
      },
    ]);
    expect((await authorize(sandbox, intent, carol)).status).toBe('executed');
  });

  test('a lowered threshold is met by the next signature, even a repeated one', async () => {
    const quorum = await world.quorum();
    const policy = await world.policy(['x'], { owner_id: quorum.id });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    await authorize(sandbox, intent, alice);
    await call(
      sandbox,
      'updateKeyQuorum',
      { path: { key_quorum_id: quorum.id }, body: { authorization_threshold: 1 } },
      { signWith: [alice, bob] },
    );
    expect((await readIntent(sandbox, intent)).status).toBe('pending');
    expect((await authorize(sandbox, intent, alice)).status).toBe('executed');
  });

  test('a nested key quorum counts as one member and is shown with its own members', async () => {
    const inner = await world.quorum({ ...treasury, display_name: 'Inner' });
    const outer = await world.quorum({
      public_keys: [carolKey.publicKey],
      key_quorum_ids: [inner.id],
      authorization_threshold: 2,
    });
    const policy = await world.policy(['x'], { owner_id: outer.id });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    // Carol is in both.
    await authorize(sandbox, intent, carol);
    const atMs = sandbox.clock.now();
    expect((await readIntent(sandbox, intent)).authorization_details).toEqual([
      {
        threshold: 2,
        members: [
          { type: 'key', public_key: carolKey.publicKey, signed_at: atMs },
          {
            type: 'key_quorum',
            key_quorum_id: inner.id,
            display_name: 'Inner',
            threshold: 2,
            threshold_met: false,
            members: [
              { type: 'key', public_key: aliceKey.publicKey, signed_at: null },
              { type: 'key', public_key: bobKey.publicKey, signed_at: null },
              { type: 'key', public_key: carolKey.publicKey, signed_at: atMs },
            ],
          },
        ],
      },
    ]);
    const done = await authorize(sandbox, intent, bob);
    expect(done).toMatchObject({
      status: 'executed',
      authorization_details: [{ members: [{}, { threshold_met: true }] }],
      action_result: { authorized_by_id: outer.id },
    });
    expect(done.action_result).not.toHaveProperty('authorized_by_display_name');
  });
});

describe('users', () => {
  test('sign with keys that are bound to the intent, and see and reject their own intents', async () => {
    const [dora, erik] = (await logIn(sandbox, 2)) as [
      Awaited<ReturnType<typeof logIn>>[number],
      Awaited<ReturnType<typeof logIn>>[number],
    ];
    const pair = await world.quorum({ user_ids: [dora.id, erik.id] });
    const policy = await world.policy(['x'], { owner_id: pair.id });
    const [first, second] = [
      await propose('updatePolicyIntent', policy.id, 'First'),
      await propose('updatePolicyIntent', policy.id, 'Second'),
    ];
    const alone = await propose('updatePolicyIntent', (await world.policy()).id, 'Not theirs');
    const key = await boundKey(sandbox, dora, [first.intent_id]);
    const asDora = { headers: dora.headers };

    expect((await call(sandbox, 'getIntent', { path: { intent_id: first.intent_id } }, asDora)).body).toEqual(
      first,
    );
    const hidden = await refusal(sandbox, 'getIntent', { path: { intent_id: alone.intent_id } }, asDora);
    expect(hidden).toEqual({ status: 404, body: { error: 'Intent not found' } });
    expect(await refusedSignature(sandbox, second, key)).toBe('401 no_valid_user_session_keys');
    const signed = await authorize(sandbox, first, key, {}, asDora);
    expect(signed.authorization_details).toEqual([
      {
        threshold: 2,
        members: [
          { type: 'user', user_id: dora.id, signed_at: sandbox.clock.now() },
          { type: 'user', user_id: erik.id, signed_at: null },
        ],
      },
    ]);
    const seen = await call(sandbox, 'listIntents', { query: { current_user_has_signed: 'true' } }, asDora);
    expect(seen.body.data).toEqual([signed]);
    const open = await call(sandbox, 'listIntents', { query: { current_user_has_signed: 'false' } }, asDora);
    expect(open.body.data).toEqual([second]);
    const rejected = await call(sandbox, 'rejectIntent', { path: { intent_id: second.intent_id } }, asDora);
    expect(rejected.body).toEqual({ ...second, status: 'rejected', rejected_at: sandbox.clock.now() });
    const foreign = await refusal(sandbox, 'rejectIntent', { path: { intent_id: alone.intent_id } }, asDora);
    expect(foreign.status).toBe(404);
    const eriks = await boundKey(sandbox, erik, [first.intent_id, second.intent_id]);
    expect((await authorize(sandbox, first, eriks)).status).toBe('executed');
  });

  test('users cannot sign with an expired key, whatever timestamp they send', async () => {
    const [dora] = await logIn(sandbox, 1);
    const quorum = await world.quorum({ user_ids: [dora!.id], public_keys: [aliceKey.publicKey] });
    const policy = await world.policy(['x'], { owner_id: quorum.id });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    const key = await boundKey(sandbox, dora!, [intent.intent_id]);
    const madeMs = sandbox.clock.now();
    const outside = async (timestamp: number) =>
      (await refusal(sandbox, 'authorizeIntent', authorizationOf(sandbox, intent, key, { timestamp }))).body;
    expect(await outside(madeMs - 5 * 60_000 - 1)).toMatchObject({
      code: 'invalid_data',
      error: '/timestamp: the user key was not valid at that time',
    });
    sandbox.clock.advance(3_600_000 - 1);
    expect(await outside(madeMs + 3_600_000)).toMatchObject({ code: 'invalid_data' });
    sandbox.clock.advance(1);
    for (const timestamp of [madeMs, madeMs + 1_000, sandbox.clock.now()]) {
      expect(await refusedSignature(sandbox, intent, key, { timestamp })).toBe(
        '401 user_session_keys_expired',
      );
    }
    // A signature that was sent in time still counts after the key has expired.
    const [again] = await logIn(sandbox, 1);
    const fresh = await boundKey(sandbox, again!, [intent.intent_id]);
    await authorize(sandbox, intent, fresh);
    sandbox.clock.advance(3_600_000);
    expect((await authorize(sandbox, intent, alice)).status).toBe('executed');
  });

  test('no longer count after they are deleted', async () => {
    const [dora] = await logIn(sandbox, 1);
    const quorum = await world.quorum({
      user_ids: [dora!.id],
      public_keys: [aliceKey.publicKey, bobKey.publicKey],
      authorization_threshold: 2,
    });
    const policy = await world.policy(['x'], { owner_id: quorum.id });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    await authorize(sandbox, intent, await boundKey(sandbox, dora!, [intent.intent_id]));
    await call(sandbox, 'deleteUser', { path: { user_id: dora!.id } });
    expect((await authorize(sandbox, intent, alice)).status).toBe('pending');
    expect((await authorize(sandbox, intent, bob)).status).toBe('executed');
  });

  test('users do not count while they are frozen', async () => {
    const [dora] = await logIn(sandbox, 1);
    const { id } = await world.quorum({ user_ids: [dora!.id], public_keys: [aliceKey.publicKey] });
    const policy = await world.policy(['x'], { owner_id: id });
    const intent = await propose('updatePolicyIntent', policy.id, 'New');
    await authorize(sandbox, intent, await boundKey(sandbox, dora!, [intent.intent_id]));
    await configureUser(sandbox, dora!.id, { frozen: true });
    expect((await authorize(sandbox, intent, alice)).status).toBe('pending');
    await configureUser(sandbox, dora!.id, { frozen: false });
    expect((await authorize(sandbox, intent, alice)).status).toBe('executed');
  });
});

describe('a signing', () => {
  test('a signing is authorized by the owner or a signer under their own policies, evaluated on execution', async () => {
    const [policy, own] = [await world.policy(['rent']), await world.policy(['gift'])];
    const signer = await sole(carolKey.publicKey);
    const wallet = await world.wallet({
      policy_ids: [policy.id],
      additional_signers: [{ signer_id: signer, override_policy_ids: [own.id] }],
    });
    const gift = await world.proposeMessage(wallet.id, 'a gift');
    expect(gift.authorization_details).toEqual([
      { display_name: 'Treasury', threshold: 2, members: expect.toSatisfy((all) => all.length === 3) },
      { threshold: 1, members: [{ type: 'key', public_key: carolKey.publicKey, signed_at: null }] },
    ]);
    // Carol is one of three owners and a signer of her own: the signer's policies apply.
    expect(await authorize(sandbox, gift, carol)).toMatchObject({
      status: 'executed',
      action_result: { authorized_by_id: signer, response_body: { method: 'personal_sign' } },
    });
    const denied = await world.proposeMessage(wallet.id, 'a gift');
    await authorize(sandbox, denied, alice);
    expect(await authorize(sandbox, denied, bob)).toMatchObject({
      status: 'failed',
      action_result: {
        status_code: 400,
        authorized_by_id: wallet.owner_id,
        response_body: { code: 'policy_violation' },
      },
    });
    // The trace of the denial is stored although the signing was rolled back.
    const uses = await sandbox.database.orm.em
      .fork()
      .execute<{ decision: string }[]>(
        "select decision from wallet_uses where wallet_id = ? and decision = 'denied'",
        [wallet.id],
      );
    expect(uses).toHaveLength(1);
    const later = await world.proposeMessage(wallet.id, 'a present');
    await authorize(sandbox, later, alice);
    await call(
      sandbox,
      'createPolicyRule',
      { path: { policy_id: policy.id }, body: messageRule('present') },
      { signWith: [alice, bob] },
    );
    expect((await authorize(sandbox, later, bob)).status).toBe('executed');
  });

  test('a signing that exports a key is for the owner only', async () => {
    const wallet = await world.wallet({
      additional_signers: [{ signer_id: await sole(carolKey.publicKey) }],
    });
    const intent = (
      await call(sandbox, 'createWalletRpcIntent', {
        path: { wallet_id: wallet.id },
        body: {
          method: 'exportPrivateKey',
          address: wallet.address,
          params: { encryption_type: 'HPKE', recipient_public_key: aliceKey.publicKey },
        },
      })
    ).body;
    expect(intent.authorization_details).toHaveLength(1);
    expect((await authorize(sandbox, intent, carol)).status).toBe('pending');
    expect(await authorize(sandbox, intent, alice)).toMatchObject({
      status: 'executed',
      action_result: { response_body: { data: { encryption_type: 'HPKE' } } },
    });
  });
});

describe('a change that is refused on execution', () => {
  test('a change that is refused on execution: fails permanently and changes nothing', async () => {
    const policy = await world.policy();
    const incomplete = { name: 'Anything', conditions: [{ field_source: 'message', value: 'x' } as const] };
    const intent = (
      await call(sandbox, 'createPolicyRuleIntent', { path: { policy_id: policy.id }, body: incomplete })
    ).body;
    const waiting = await propose('updatePolicyIntent', policy.id, 'New');
    await authorize(sandbox, intent, alice);
    expect(await authorize(sandbox, intent, bob)).toMatchObject({
      status: 'failed',
      action_result: {
        status_code: 400,
        response_body: { code: 'invalid_data', error: expect.stringContaining('is required') },
      },
    });
    expect((await call(sandbox, 'getPolicy', { path: { policy_id: policy.id } })).body).toEqual(policy);
    // The failed intent changed nothing, so no other intent is dismissed.
    expect((await readIntent(sandbox, waiting)).status).toBe('pending');
    expect((await intentEvents(sandbox, intent.intent_id)).at(-1)).toMatchObject({
      type: 'intent.failed',
      status: 'failed',
    });
  });

  test('a change of a key quorum by an intent requires the members from before the change', async () => {
    const quorum = await world.quorum();
    const intent = (
      await call(sandbox, 'updateKeyQuorumIntent', {
        path: { key_quorum_id: quorum.id },
        body: { public_keys: [carolKey.publicKey], authorization_threshold: 1 },
      })
    ).body;
    await authorize(sandbox, intent, alice);
    const done = await authorize(sandbox, intent, bob);
    expect(done).toMatchObject({
      status: 'executed',
      // The eligible members are those at the time of execution.
      authorization_details: [{ threshold: 2, members: [{}, {}, { signed_at: null }] }],
      action_result: { authorized_by_id: quorum.id, prior_state: quorum },
      current_resource_data: { authorization_keys: [{ public_key: carolKey.publicKey }] },
    });
  });
});
