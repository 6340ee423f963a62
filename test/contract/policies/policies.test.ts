import { expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { spendingPolicy } from '../../../mocks/policies.ts';
import type { CreatePolicyRequest } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { messagePolicy, messageRule, seededStartMs, unknownId } from './rules.ts';

const cuid2 = expect.stringMatching(/^[a-z][0-9a-z]{23}$/);
const notFound = { status: 404, body: { error: 'Policy not found' } };

test('a policy is created, read, changed and deleted', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: spendingPolicy });
  expect(made).toEqual({
    id: cuid2,
    version: '1.0',
    name: 'At most 0.1 ether at once',
    chain_type: 'ethereum',
    rules: spendingPolicy.rules.map((rule) => ({ id: cuid2, ...rule })),
    owner_id: null,
    created_at: seededStartMs,
  });
  const path = { policy_id: made.id };
  expect((await call(sandbox, 'getPolicy', { path })).body).toEqual(made);

  sandbox.clock.advance(5000);
  const renamed = await call(sandbox, 'updatePolicy', { path, body: { name: 'Small sums' } });
  expect(renamed.body).toEqual({ ...made, name: 'Small sums' });
  expect((await call(sandbox, 'getPolicy', { path })).body).toEqual(renamed.body);

  expect((await call(sandbox, 'deletePolicy', { path })).body).toEqual({ success: true });
  expect(await refusal(sandbox, 'getPolicy', { path })).toEqual(notFound);
  expect(await refusal(sandbox, 'deletePolicy', { path })).toEqual(notFound);
});

test('rules keep their order; ids in the request are ignored', async () => {
  await using sandbox = await startSandbox();
  const words = ['one', 'two', 'three', 'four', 'five'];
  const input = messagePolicy(words);
  const withIds = { ...input, rules: input.rules.map((rule) => ({ ...rule, id: 'a'.repeat(24) })) };
  const { body: made } = await call(sandbox, 'createPolicy', { body: withIds });
  expect(made.rules).toEqual(input.rules.map((rule) => ({ id: cuid2, ...rule })));
  const ids = made.rules.map(({ id }) => id);
  expect(new Set([...ids, 'a'.repeat(24)]).size).toBe(6);
});

test('given rules replace all others, with new ids', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(['one', 'two']) });
  const path = { policy_id: made.id };
  const rules = [messageRule('two'), messageRule('three', 'DENY')];
  const { body: changed } = await call(sandbox, 'updatePolicy', { path, body: { rules } });
  expect(changed).toEqual({ ...made, rules: rules.map((rule) => ({ id: cuid2, ...rule })) });
  const old = made.rules.map(({ id }) => id);
  for (const { id } of changed.rules) expect(old).not.toContain(id);
  const { body: emptied } = await call(sandbox, 'updatePolicy', { path, body: { rules: [] } });
  expect(emptied).toEqual({ ...made, rules: [] });
});

test('an owner is set, changed and removed', async () => {
  await using sandbox = await startSandbox();
  const body: CreatePolicyRequest = { ...messagePolicy([]), owner: { public_key: aliceKey.publicKey } };
  const { body: made } = await call(sandbox, 'createPolicy', { body });
  expect(made.owner_id).toEqual(cuid2);
  const quorum = await call(sandbox, 'getKeyQuorum', { path: { key_quorum_id: made.owner_id! } });
  expect(quorum.body.authorization_keys).toEqual([{ public_key: aliceKey.publicKey, display_name: null }]);
  const signed = { signWith: [aliceKey.privateKey] };
  const path = { policy_id: made.id };
  const freed = await call(sandbox, 'updatePolicy', { path, body: { owner: null } }, signed);
  expect(freed.body).toEqual({ ...made, owner_id: null });
  // Without an owner, the next one is set without a signature.
  const owned = await call(sandbox, 'updatePolicy', { path, body: { owner_id: made.owner_id! } });
  expect(owned.body).toEqual(made);
});

test('an owner that does not exist is refused', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy([]) });
  const path = { policy_id: made.id };
  for (const owner of [{ owner_id: unknownId }, { owner: { user_id: 'did:service:unknown' } }]) {
    for (const answer of [
      await refusal(sandbox, 'createPolicy', { body: { ...messagePolicy([]), ...owner } }),
      await refusal(sandbox, 'updatePolicy', { path, body: owner }),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_data']);
    }
  }
  expect((await call(sandbox, 'getPolicy', { path })).body).toEqual(made);
});

test('fields that are not in the contract are refused', async () => {
  await using sandbox = await startSandbox();
  const whole = messagePolicy(['one']);
  const { body: made } = await call(sandbox, 'createPolicy', { body: whole });
  const rule = messageRule('one');
  const wrong: readonly object[] = [
    { ...whole, version: '2.0' },
    { ...whole, version: undefined },
    { ...whole, name: '' },
    { ...whole, name: 'a'.repeat(51) },
    { ...whole, name: undefined },
    { ...whole, chain_type: 'moon' },
    { ...whole, chain_type: undefined },
    { ...whole, rules: undefined },
    { ...whole, rules: Array.from({ length: 101 }, () => rule) },
    { ...whole, rules: [{ ...rule, name: '' }] },
    { ...whole, rules: [{ ...rule, name: 'a'.repeat(51) }] },
    { ...whole, rules: [{ ...rule, action: 'allow' }] },
    { ...whole, rules: [{ ...rule, method: 'eth_fly' }] },
    { ...whole, rules: [{ ...rule, conditions: Array.from({ length: 51 }, () => rule.conditions[0]) }] },
    { ...whole, rules: [{ ...rule, conditions: [{ field_source: 'message', value: 'a' }] }] },
    { ...whole, owner: { public_key: aliceKey.publicKey }, owner_id: unknownId },
    { ...whole, color: 'red' },
  ];
  for (const body of wrong) {
    const answer = await refusal(sandbox, 'createPolicy', { body });
    expect([answer.status, answer.body.code], JSON.stringify(body).slice(0, 200)).toEqual([
      400,
      'invalid_data',
    ]);
  }
  const path = { policy_id: made.id };
  for (const body of [{}, { chain_type: 'solana' }, { version: '1.0' }, { name: '' }, { rules: null }]) {
    const answer = await refusal(sandbox, 'updatePolicy', { path, body });
    expect([answer.status, answer.body.code], JSON.stringify(body)).toEqual([400, 'invalid_data']);
  }
  expect((await call(sandbox, 'getPolicy', { path })).body).toEqual(made);
});

test('values at the limits are accepted', async () => {
  await using sandbox = await startSandbox();
  const rule = messageRule('one');
  const full = { ...rule, conditions: Array.from({ length: 50 }, () => rule.conditions[0]!) };
  const rules = [full, ...Array.from({ length: 99 }, () => rule)];
  const body = { ...messagePolicy([]), name: 'a'.repeat(50), rules };
  const { body: made } = await call(sandbox, 'createPolicy', { body });
  expect(made.rules).toHaveLength(100);
  expect(made.rules[0]?.conditions).toHaveLength(50);
});

test('an id of another length is refused; an unknown one, or one of another app, is not found', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(['one']) });
  const other = await asOtherApp(sandbox);
  for (const policy_id of ['short', 'z'.repeat(25)]) {
    const answer = await refusal(sandbox, 'getPolicy', { path: { policy_id } });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_data']);
  }
  for (const [who, policy_id] of [
    [sandbox, unknownId],
    [other, made.id],
  ] as const) {
    const path = { policy_id };
    expect(await refusal(who, 'getPolicy', { path })).toEqual(notFound);
    expect(await refusal(who, 'updatePolicy', { path, body: { name: 'Mine' } })).toEqual(notFound);
    expect(await refusal(who, 'deletePolicy', { path })).toEqual(notFound);
    expect(await refusal(who, 'createPolicyRule', { path, body: messageRule('a') })).toEqual(notFound);
    const rulePath = { ...path, rule_id: made.rules[0]!.id };
    expect(await refusal(who, 'getPolicyRule', { path: rulePath })).toEqual(notFound);
    expect(await refusal(who, 'updatePolicyRule', { path: rulePath, body: messageRule('a') })).toEqual(
      notFound,
    );
    expect(await refusal(who, 'deletePolicyRule', { path: rulePath })).toEqual(notFound);
  }
  expect((await call(sandbox, 'getPolicy', { path: { policy_id: made.id } })).body).toEqual(made);
});

test('one idempotency key creates one policy', async () => {
  await using sandbox = await startSandbox();
  const input = { body: messagePolicy(['one']) };
  const first = await call(sandbox, 'createPolicy', input, { idempotencyKey: 'k' });
  const again = await call(sandbox, 'createPolicy', input, { idempotencyKey: 'k' });
  expect(again.body).toEqual(first.body);
  const other = await refusal(sandbox, 'createPolicy', { body: messagePolicy([]) }, { idempotencyKey: 'k' });
  expect([other.status, other.body.code]).toEqual([400, 'invalid_data']);
});
