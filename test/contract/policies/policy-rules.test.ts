import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { messagePolicy, messageRule, unknownId } from './rules.ts';

const cuid2 = expect.stringMatching(/^[a-z][0-9a-z]{23}$/);
const notFound = { status: 404, body: { error: 'Rule not found' } };

test('a rule is appended, read, replaced in place and removed', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(['one', 'two']) });
  const path = { policy_id: made.id };
  const rules = async () => (await call(sandbox, 'getPolicy', { path })).body.rules;

  const { body: third } = await call(sandbox, 'createPolicyRule', { path, body: messageRule('three') });
  expect(third).toEqual({ id: cuid2, ...messageRule('three') });
  expect(await rules()).toEqual([...made.rules, third]);

  const [first, second] = made.rules;
  const secondPath = { ...path, rule_id: second!.id };
  expect((await call(sandbox, 'getPolicyRule', { path: secondPath })).body).toEqual(second);

  const body = messageRule('zwei', 'DENY');
  const { body: replaced } = await call(sandbox, 'updatePolicyRule', { path: secondPath, body });
  expect(replaced).toEqual({ id: second!.id, ...body });
  expect(await rules()).toEqual([first, replaced, third]);
  expect((await call(sandbox, 'getPolicyRule', { path: secondPath })).body).toEqual(replaced);

  expect((await call(sandbox, 'deletePolicyRule', { path: secondPath })).body).toEqual({ success: true });
  expect(await rules()).toEqual([first, third]);
  expect(await refusal(sandbox, 'getPolicyRule', { path: secondPath })).toEqual(notFound);
  expect(await refusal(sandbox, 'updatePolicyRule', { path: secondPath, body })).toEqual(notFound);
  expect(await refusal(sandbox, 'deletePolicyRule', { path: secondPath })).toEqual(notFound);
});

test('a rule of another policy is not found', async () => {
  await using sandbox = await startSandbox();
  const { body: mine } = await call(sandbox, 'createPolicy', { body: messagePolicy(['one']) });
  const { body: other } = await call(sandbox, 'createPolicy', { body: messagePolicy(['two']) });
  for (const rule_id of [other.rules[0]!.id, unknownId]) {
    const path = { policy_id: mine.id, rule_id };
    expect(await refusal(sandbox, 'getPolicyRule', { path })).toEqual(notFound);
    expect(await refusal(sandbox, 'updatePolicyRule', { path, body: messageRule('a') })).toEqual(notFound);
    expect(await refusal(sandbox, 'deletePolicyRule', { path })).toEqual(notFound);
  }
  expect((await call(sandbox, 'getPolicy', { path: { policy_id: other.id } })).body).toEqual(other);
});

test('a rule is replaced as a whole', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(['one']) });
  const path = { policy_id: made.id, rule_id: made.rules[0]!.id };
  const { conditions, ...partial } = messageRule('one');
  for (const body of [
    {},
    { name: 'new' },
    partial,
    { conditions },
    { ...messageRule('one'), id: unknownId },
  ]) {
    const answer = await refusal(sandbox, 'updatePolicyRule', { path, body });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_data']);
  }
  expect((await call(sandbox, 'getPolicyRule', { path })).body).toEqual(made.rules[0]);
});

test('a policy has at most 100 rules, however they are added', async () => {
  await using sandbox = await startSandbox();
  const words = Array.from({ length: 99 }, (_, index) => `w${index}`);
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(words) });
  const path = { policy_id: made.id };
  await call(sandbox, 'createPolicyRule', { path, body: messageRule('last') });
  const answer = await refusal(sandbox, 'createPolicyRule', { path, body: messageRule('over') });
  expect(answer).toEqual({
    status: 400,
    body: {
      error: '/rules: expected at most 100 rules, got 101',
      code: 'invalid_policy_format',
      data: { issues: [{ in: 'body', pointer: '/rules', message: 'expected at most 100 rules, got 101' }] },
    },
  });
  expect((await call(sandbox, 'getPolicy', { path })).body.rules).toHaveLength(100);
});

test('rules that are added or changed one by one share the size limit of a request', async () => {
  await using sandbox = await startSandbox();
  const long = (letter: string, length: number) => ({
    ...messageRule(letter),
    conditions: [{ ...messageRule(letter).conditions[0]!, value: letter.repeat(length) }] as never,
  });
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(['short', 'short']) });
  const path = { policy_id: made.id };
  const { body: half } = await call(sandbox, 'createPolicyRule', { path, body: long('a', 600_000) });
  const tooLong = {
    status: 400,
    body: {
      code: 'invalid_policy_format',
      error: expect.stringMatching(
        /^\/rules: expected at most 1048576 characters of rules, got 1[0-9]{6}$/,
      ) as string,
    },
  };
  expect(await refusal(sandbox, 'createPolicyRule', { path, body: long('b', 600_000) })).toMatchObject(
    tooLong,
  );
  const change = { path: { ...path, rule_id: made.rules[0]!.id }, body: long('c', 600_000) };
  expect(await refusal(sandbox, 'updatePolicyRule', change)).toMatchObject(tooLong);
  expect((await call(sandbox, 'getPolicy', { path })).body.rules).toEqual([...made.rules, half]);
  const { body: changed } = await call(sandbox, 'updatePolicyRule', {
    ...change,
    body: long('c', 400_000),
  });
  expect((await call(sandbox, 'getPolicy', { path })).body.rules).toEqual([changed, made.rules[1], half]);
});

test('rules that are added concurrently are all stored', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy([]) });
  const path = { policy_id: made.id };
  const words = Array.from({ length: 8 }, (_, index) => `w${index}`);
  const added = await Promise.all(
    words.map((word) => call(sandbox, 'createPolicyRule', { path, body: messageRule(word) })),
  );
  const { rules } = (await call(sandbox, 'getPolicy', { path })).body;
  expect(rules).toHaveLength(8);
  expect(rules).toEqual(expect.arrayContaining(added.map(({ body }) => body)));
});
