import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { treasuryQuorum } from '../../../mocks/key-quorums.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { authorize, intentEvents, type Proposed, readIntent } from '../../support/intents.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messagePolicy, messageRule } from '../policies/rules.ts';

// The published life cycle of intents (behaviour.md §7), over HTTPS, with the clock set by the control plane.
const [alice, bob] = [aliceKey.privateKey, bobKey.privateKey];
const HOUR_MS = 60 * 60_000;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function advance(ms: number): Promise<void> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/_sandbox/clock',
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ advance_ms: ms }),
  });
  expect(answer.statusCode).toBe(200);
  await answer.body.dump();
}

test('a treasury of three members: intents are executed, rejected, expired, dismissed and failed; list, events and policy agree', async () => {
  const startMs = sandbox.clock.now();
  const quorumId = (await call(sandbox, 'createKeyQuorum', { body: treasuryQuorum })).body.id;
  const policy = (
    await call(sandbox, 'createPolicy', { body: { ...messagePolicy(['rent']), owner_id: quorumId } })
  ).body;
  const wallet = (
    await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner_id: quorumId, policy_ids: [policy.id] },
    })
  ).body;
  const proposeRule = async (word: string) =>
    (
      await call(sandbox, 'createPolicyRuleIntent', {
        path: { policy_id: policy.id },
        body: messageRule(word),
      })
    ).body;
  const proposeMessage = async (message: string) =>
    (
      await call(sandbox, 'createWalletRpcIntent', {
        path: { wallet_id: wallet.id },
        body: { method: 'personal_sign', params: { encoding: 'utf-8', message } },
      })
    ).body;

  // A rule is added by two of three.
  const added = await proposeRule('salary');
  expect(added).toEqual({
    intent_id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    intent_type: 'RULE',
    status: 'pending',
    resource_id: policy.id,
    created_at: startMs,
    created_by_display_name: 'API',
    custom_expiry: false,
    expires_at: startMs + 72 * HOUR_MS,
    authorization_details: [
      {
        display_name: 'Treasury',
        threshold: 2,
        members: [aliceKey, bobKey, carolKey].map(({ publicKey }) => ({
          type: 'key',
          public_key: publicKey,
          signed_at: null,
        })),
      },
    ],
    request_details: {
      method: 'POST',
      url: `${sandbox.baseUrl}/v1/policies/${policy.id}/rules`,
      body: messageRule('salary'),
    },
    policy,
  });
  await advance(HOUR_MS);
  const once = await authorize(sandbox, added, alice);
  expect(once.status).toBe('pending');
  expect(
    once.authorization_details[0]?.members.map(({ type, ...member }) => ({ type, ...member })),
  ).toMatchObject([
    { public_key: aliceKey.publicKey, signed_at: startMs + HOUR_MS },
    { signed_at: null },
    { signed_at: null },
  ]);
  await advance(HOUR_MS);
  const executed = await authorize(sandbox, added, bob);
  const rule = { id: expect.any(String), ...messageRule('salary') };
  expect(executed).toMatchObject({
    status: 'executed',
    action_result: {
      status_code: 200,
      executed_at: startMs + 2 * HOUR_MS,
      authorized_by_id: quorumId,
      authorized_by_display_name: 'Treasury',
      response_body: rule,
    },
    policy: { rules: [messageRule('rent'), messageRule('salary')] },
  });

  // One is rejected, one is dismissed by a direct change, one fails on the policy, one expires.
  const rejected = await proposeRule('bonus');
  await call(sandbox, 'rejectIntent', { path: { intent_id: rejected.intent_id } });
  const dismissed = await proposeRule('gift');
  await authorize(sandbox, dismissed, alice);
  await call(
    sandbox,
    'updatePolicy',
    { path: { policy_id: policy.id }, body: { name: 'Payroll' } },
    { signWith: [alice, bob] },
  );
  const failed = await proposeMessage('a gift for Bob');
  await authorize(sandbox, failed, alice);
  await authorize(sandbox, failed, bob);
  const signed = await proposeMessage('the salary of May');
  const allowed = await authorize(sandbox, signed, alice).then(() => authorize(sandbox, signed, bob));
  expect(allowed).toMatchObject({
    status: 'executed',
    action_result: { status_code: 200, response_body: { method: 'personal_sign' } },
  });
  expect(allowed.action_result).not.toHaveProperty('prior_state');
  const expired = await proposeRule('bribe');
  await authorize(sandbox, expired, alice);
  await advance(72 * HOUR_MS);
  expect((await readIntent(sandbox, expired)).status).toBe('pending');
  await advance(1);
  const late = await refusal(sandbox, 'authorizeIntent', {
    path: { intent_id: expired.intent_id },
    body: { signature: 'AAAA', timestamp: sandbox.clock.now() },
  });
  expect(late).toMatchObject({ status: 400, body: { code: 'invalid_state' } });

  const reported = new Map<string, string>([
    [added.intent_id, 'executed'],
    [rejected.intent_id, 'rejected'],
    [dismissed.intent_id, 'dismissed'],
    [failed.intent_id, 'failed'],
    [signed.intent_id, 'executed'],
    [expired.intent_id, 'expired'],
  ]);
  await expectListed(reported);
  await expectReasons({ rejected, dismissed, failed }, startMs + 2 * HOUR_MS);
  await expectEvents({ added, rejected, dismissed, failed, expired });
  const now = (await call(sandbox, 'getPolicy', { path: { policy_id: policy.id } })).body;
  expect(now).toEqual({
    ...policy,
    name: 'Payroll',
    rules: [policy.rules[0], (executed.action_result as { response_body: unknown }).response_body],
  });
});

async function expectListed(reported: Map<string, string>): Promise<void> {
  const { body } = await call(sandbox, 'listIntents', {});
  expect(new Map(body.data.map((intent) => [intent.intent_id, intent.status]))).toEqual(reported);
  for (const status of [
    'pending',
    'processing',
    ...new Set(reported.values()),
  ] as IntentResponse['status'][]) {
    const page = await call(sandbox, 'listIntents', { query: { status } });
    const expected = [...reported].filter(([, other]) => other === status).map(([id]) => id);
    expect(page.body.data.map(({ intent_id: id }) => id).sort(), status).toEqual(expected.sort());
  }
}

async function expectReasons(
  { rejected, dismissed, failed }: Record<'rejected' | 'dismissed' | 'failed', Proposed>,
  atMs: number,
): Promise<void> {
  expect(await readIntent(sandbox, rejected)).toMatchObject({ status: 'rejected', rejected_at: atMs });
  expect(await readIntent(sandbox, dismissed)).toMatchObject({
    status: 'dismissed',
    dismissed_at: atMs,
    dismissal_reason: 'The policy was changed.',
    authorization_details: [{ members: [{ signed_at: atMs }, { signed_at: null }, { signed_at: null }] }],
  });
  expect(await readIntent(sandbox, failed)).toMatchObject({
    status: 'failed',
    action_result: { status_code: 400, response_body: { code: 'policy_violation' } },
  });
}

async function expectEvents(intents: Record<string, Proposed>): Promise<void> {
  const types = async (name: string) =>
    (await intentEvents(sandbox, intents[name]!.intent_id)).map(({ type }) => type);
  const [created, authorized] = ['intent.created', 'intent.authorized'];
  expect(await types('added')).toEqual([created, authorized, authorized, 'intent.executed']);
  expect(await types('rejected')).toEqual([created, 'intent.rejected']);
  expect(await types('dismissed')).toEqual([created, authorized]);
  expect(await types('failed')).toEqual([created, authorized, authorized, 'intent.failed']);
  expect(await types('expired')).toEqual([created, authorized]);
}
