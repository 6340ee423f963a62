import { expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { call } from '../../support/call.ts';
import { authorize, refusedSignature } from '../../support/intents.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('a client of another brand signs the branded request', async () => {
  await using sandbox = await startSandbox({ prefix: 'acme' });
  const { body: user } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'dora@example.com' }] },
  });
  expect(user.id).toMatch(/^did:acme:/);
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [aliceKey.publicKey] },
  });
  const expiryMs = sandbox.clock.now() + 60_000;
  const { body: intent } = await call(
    sandbox,
    'updateKeyQuorumIntent',
    { path: { key_quorum_id: quorum.id }, body: { user_ids: [user.id], authorization_threshold: 1 } },
    { expiryMs },
  );
  expect(intent.request_details.body).toEqual({ user_ids: [user.id], authorization_threshold: 1 });
  expect(await refusedSignature(sandbox, intent, aliceKey.privateKey, { expiryMs: expiryMs + 1 })).toBe(
    '401 zero_correct_authorization_signatures',
  );
  const done = await authorize(sandbox, intent, aliceKey.privateKey, { expiryMs });
  expect(done).toMatchObject({
    status: 'executed',
    action_result: { response_body: { user_ids: [user.id] } },
    current_resource_data: { user_ids: [user.id] },
  });
});
