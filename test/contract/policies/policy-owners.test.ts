import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { call, refusal, signRequest } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { expectOwnersAreAsked, makePair, signedByPair } from './owner-signatures.ts';
import { messagePolicy, messageRule } from './rules.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const changes: readonly { operation: OperationId; body?: unknown; ofRule?: true }[] = [
  { operation: 'updatePolicy', body: { name: 'Taken' } },
  { operation: 'updatePolicy', body: { rules: [] } },
  { operation: 'updatePolicy', body: { owner: null } },
  { operation: 'updatePolicy', body: { owner: { public_key: aliceKey.publicKey } } },
  { operation: 'createPolicyRule', body: messageRule('anything') },
  { operation: 'updatePolicyRule', body: messageRule('anything'), ofRule: true },
  { operation: 'deletePolicyRule', ofRule: true },
  { operation: 'deletePolicy' },
];

test.each(changes)(
  "$operation $body requires the owners' signatures",
  async ({ operation, body, ofRule }) => {
    const input = { ...messagePolicy(['one']), owner_id: await makePair(sandbox) };
    // Creating a policy for another owner needs no signature of that owner.
    const { body: made } = await call(sandbox, 'createPolicy', { body: input });
    const policyPath = { policy_id: made.id };
    const path = ofRule ? { ...policyPath, rule_id: made.rules[0]!.id } : policyPath;
    const change = { operation, input: body === undefined ? { path } : { path, body } };

    await expectOwnersAreAsked(sandbox, change);
    expect((await call(sandbox, 'getPolicy', { path: policyPath })).body).toEqual(made);

    await call(sandbox, operation, change.input as never, signedByPair);
  },
);

test('changing the owner requires the old owner, not the new one', async () => {
  const { body: made } = await call(sandbox, 'createPolicy', {
    body: { ...messagePolicy([]), owner: { public_key: aliceKey.publicKey } },
  });
  const path = { policy_id: made.id };
  const change = { path, body: { owner: { public_key: bobKey.publicKey } } };
  const byBob = await refusal(sandbox, 'updatePolicy', change, { signWith: [bobKey.privateKey] });
  expect([byBob.status, byBob.body.code]).toEqual([401, 'zero_correct_authorization_signatures']);
  const { body: moved } = await call(sandbox, 'updatePolicy', change, { signWith: [aliceKey.privateKey] });
  expect(moved.owner_id).not.toBe(made.owner_id);
  const byAlice = await refusal(sandbox, 'deletePolicy', { path }, { signWith: [aliceKey.privateKey] });
  expect([byAlice.status, byAlice.body.code]).toEqual([401, 'zero_correct_authorization_signatures']);
  await call(sandbox, 'deletePolicy', { path }, { signWith: [bobKey.privateKey] });
});

test('a signature for one policy does not count for another', async () => {
  const owner = { public_key: aliceKey.publicKey };
  const make = async () =>
    (await call(sandbox, 'createPolicy', { body: { ...messagePolicy([]), owner } })).body.id;
  const [one, two] = [await make(), await make()];
  const request = { method: 'DELETE', target: `/v1/policies/${one}`, body: undefined };
  const signature = signRequest(sandbox, request, { 'service-app-id': sandbox.appId }, aliceKey.privateKey);
  const options = { headers: { 'service-authorization-signature': signature } };
  const answer = await refusal(sandbox, 'deletePolicy', { path: { policy_id: two } }, options);
  expect([answer.status, answer.body.code]).toEqual([401, 'zero_correct_authorization_signatures']);
  await call(sandbox, 'deletePolicy', { path: { policy_id: one } }, options);
});

test('a quorum that owns a policy cannot be deleted', async () => {
  const owner_id = await makePair(sandbox);
  const { body: made } = await call(sandbox, 'createPolicy', { body: { ...messagePolicy([]), owner_id } });
  const path = { key_quorum_id: owner_id };
  const answer = await refusal(sandbox, 'deleteKeyQuorum', { path }, signedByPair);
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain('the owner of a policy');
  await call(sandbox, 'deletePolicy', { path: { policy_id: made.id } }, signedByPair);
  await call(sandbox, 'deleteKeyQuorum', { path }, signedByPair);
});
