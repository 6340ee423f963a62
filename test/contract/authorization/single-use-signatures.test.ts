import { createPrivateKey, sign } from 'node:crypto';
import canonicalize from 'canonicalize';
import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse, Policy } from '../../../src/generated/schemas.ts';
import { attempt, call } from '../../support/call.ts';
import { databaseKinds } from '../../support/databases.ts';
import { configureApp } from '../../support/other-app.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { messagePolicy, messageRule } from '../policies/rules.ts';

// The app secret and one signed request are enough to send it again until it expires. A rule that is added to a policy
// of Alice's shows how many times a request was executed.
const [alice, bob] = [aliceKey.privateKey, bobKey.privateKey];
const hourMs = 3_600_000;

describe.each(databaseKinds)('on %s', (kind) => {
  const open = (isOn = true) =>
    openOperations(kind, { safeguards: { single_use_signatures: isOn }, poolSize: 5 });

  async function newPolicy(operations: TestOperations, owner: object = { owner: alicePublicly }) {
    const body = { ...messagePolicy(['rent']), ...owner };
    return ((await operations.run('createPolicy', { body })).body as Policy).id;
  }

  const alicePublicly = { public_key: aliceKey.publicKey };

  const addRule = async (operations: TestOperations, policyId: string, input: RunInput = {}) => {
    const answer = await operations.run('createPolicyRule', {
      path: { policy_id: policyId },
      body: messageRule('more'),
      signWith: [alice],
      ...input,
    });
    const { id, code } = answer.body as { id?: string; code?: string };
    return answer.status === 200 ? id : `${answer.status} ${code}`;
  };

  const countAdded = async (operations: TestOperations, policyId: string) => {
    const { body } = await operations.run('getPolicy', { path: { policy_id: policyId } });
    return (body as Policy).rules.length - 1;
  };

  test('a repeated request is executed once and gets the first response', async () => {
    await using operations = await open();
    const id = await newPolicy(operations);
    const first = await addRule(operations, id);
    expect(await addRule(operations, id)).toBe(first);
    // The owner's next request is another one.
    expect(await addRule(operations, id, { body: messageRule('again') })).not.toBe(first);
    expect(await countAdded(operations, id)).toBe(2);
  });

  test('without the setting every repetition is executed', async () => {
    await using operations = await open(false);
    const id = await newPolicy(operations);
    expect(await addRule(operations, id)).not.toBe(await addRule(operations, id));
    expect(await countAdded(operations, id)).toBe(2);
  });

  test('concurrent repetitions are executed once', async () => {
    await using operations = await open();
    const id = await newPolicy(operations);
    const answers = await Promise.all(Array.from({ length: 5 }, () => addRule(operations, id)));
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).not.toMatch(/^\d/);
    expect(await countAdded(operations, id)).toBe(1);
  });

  test('the first response outlives the rights of its signer, but only its signers get it', async () => {
    await using operations = await open();
    const id = await newPolicy(operations);
    const first = await addRule(operations, id);
    const body = { owner: { public_key: bobKey.publicKey } };
    const toBob = { path: { policy_id: id }, body, signWith: [alice] };
    expect((await operations.run('updatePolicy', toBob)).status).toBe(200);
    expect(await addRule(operations, id)).toBe(first);
    expect(await addRule(operations, id, { signWith: [bob] })).toBe(
      '401 zero_correct_authorization_signatures',
    );
    expect(await addRule(operations, id, { signWith: [] })).toBe('401 missing_or_empty_authorization_header');
    expect(await countAdded(operations, id)).toBe(1);
  });

  test('a refused request uses nothing', async () => {
    await using operations = await open();
    const id = await newPolicy(operations);
    const tooMany = Array.from({ length: 200 }, () => messageRule('x').conditions[0]!);
    const unusable = {
      body: { ...messageRule('x'), conditions: [...tooMany, { field_source: 'x' }] },
      // The one of the request that follows.
      payload: canonicalize({
        ...{ version: 1, method: 'POST', url: `https://api.acme.example/v1/policies/${id}/rules` },
        ...{ body: messageRule('more'), headers: { 'service-app-id': operations.app.id } },
      }) as string,
    };
    expect(await addRule(operations, id, unusable)).toMatch(/^400/);
    expect(await addRule(operations, id, { signWith: [bob] })).toMatch(/^401/);
    expect(await addRule(operations, id)).not.toMatch(/^4/);
  });

  test('with an idempotency key the response is repeated even after the key has expired', async () => {
    await using operations = await open();
    const id = await newPolicy(operations);
    const first = await addRule(operations, id, { idempotencyKey: 'once' });
    operations.clock.nowMs += 25 * hourMs;
    expect(await addRule(operations, id, { idempotencyKey: 'once' })).toBe(first);
    expect(await countAdded(operations, id)).toBe(1);
  });

  describe('an intent', () => {
    const treasury = { public_keys: [aliceKey.publicKey, bobKey.publicKey], authorization_threshold: 2 };

    async function ownedByBoth(operations: TestOperations) {
      const { body } = await operations.run('createKeyQuorum', { body: treasury });
      return newPolicy(operations, { owner_id: (body as { id: string }).id });
    }

    const propose = async (operations: TestOperations, policyId: string) => {
      const input = { path: { policy_id: policyId }, body: messageRule('more') };
      return (await operations.run('createPolicyRuleIntent', input)).body as IntentResponse;
    };

    // {"body":…,"headers":{…},"method":…,"url":…,"version":1}, as published clients sign it
    const payloadOf = ({ app }: TestOperations, { request_details: details }: IntentResponse): string => {
      const headers = { 'service-app-id': app.id };
      return canonicalize({ version: 1, ...details, headers }) as string;
    };

    const authorize = async (operations: TestOperations, intent: IntentResponse, privateKey: string) => {
      const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
      const signature = sign('sha256', Buffer.from(payloadOf(operations, intent)), key).toString('base64');
      const answer = await operations.run('authorizeIntent', {
        path: { intent_id: intent.intent_id },
        body: { signature, timestamp: operations.clock.nowMs },
      });
      const { status, code } = answer.body as { status?: string; code?: string };
      return answer.status === 200 ? status : `${answer.status} ${code}`;
    };

    test('an intent uses the payload that its members sign, for other intents and for the direct request', async () => {
      await using operations = await open();
      const id = await ownedByBoth(operations);
      const [intent, twin] = [await propose(operations, id), await propose(operations, id)];
      expect(await authorize(operations, intent, alice)).toBe('pending');
      expect(await authorize(operations, twin, alice)).toBe('401 zero_correct_authorization_signatures');
      expect(await authorize(operations, intent, bob)).toBe('executed');
      const later = await propose(operations, id);
      expect(await authorize(operations, later, bob)).toBe('401 zero_correct_authorization_signatures');
      const direct = { signWith: [alice, bob], payload: payloadOf(operations, intent) };
      expect(await addRule(operations, id, direct)).toBe('401 zero_correct_authorization_signatures');
      expect(await countAdded(operations, id)).toBe(1);
    });

    test('an intent does not accept a payload that a direct request has used', async () => {
      await using operations = await open();
      const id = await ownedByBoth(operations);
      const intent = await propose(operations, id);
      const direct = { signWith: [alice, bob], payload: payloadOf(operations, intent) };
      // The direct change dismisses intents of the policy, so the second one is proposed after it.
      expect(await addRule(operations, id, direct)).not.toMatch(/^4/);
      const later = await propose(operations, id);
      expect(await authorize(operations, later, alice)).toBe('401 zero_correct_authorization_signatures');
      expect(await countAdded(operations, id)).toBe(1);
    });

    test('executes as often as it is proposed without the setting', async () => {
      await using operations = await open(false);
      const id = await ownedByBoth(operations);
      for (let count = 0; count < 2; count += 1) {
        const intent = await propose(operations, id);
        expect(await authorize(operations, intent, alice)).toBe('pending');
        expect(await authorize(operations, intent, bob)).toBe('executed');
      }
      expect(await countAdded(operations, id)).toBe(2);
    });
  });
});

test('over HTTP, the repetition is marked, and the app decides', async () => {
  await using sandbox = await startSandbox();
  const owner = { public_key: aliceKey.publicKey };
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: { ...messagePolicy(['rent']), owner },
  });
  const input = { path: { policy_id: policy.id }, body: messageRule('more') };
  const expiryMs = sandbox.clock.now() + 60_000;
  const send = (at = expiryMs) =>
    attempt(sandbox, 'createPolicyRule', input, { signWith: [alice], expiryMs: at });
  expect((await send()).body).not.toEqual((await send()).body);
  await configureApp(sandbox, { single_use_signatures: true });
  const first = await send();
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  expect(await send()).toMatchObject({
    status: 200,
    body: first.body,
    headers: { 'idempotent-replayed': 'true' },
  });
  // Signed again, with another expiry.
  expect((await send(expiryMs + 1)).body).not.toEqual(first.body);
  const { body: now } = await call(sandbox, 'getPolicy', { path: { policy_id: policy.id } });
  expect(now.rules).toHaveLength(1 + 2 + 2);
  await expect(configureApp(sandbox, { single_use_signatures: 'yes' })).rejects.toThrow(
    '/settings/single_use_signatures: expected true or false',
  );
});
