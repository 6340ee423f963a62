import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const nowMs = Date.UTC(2026, 0, 1);
const path = { wallet_id: 'ext_wal_acme-ethereum' };

test('a wallet is assigned to a user once; its owner does not change', async () => {
  await using sandbox = await startSandbox();
  const { body: before } = await call(sandbox, 'getWallet', { path });
  const { body: user } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'erin' }] },
  });
  const entity = { type: 'user', id: user.id } as const;
  const { body } = await call(sandbox, 'assignWalletEntity', { path, body: entity });
  expect(body).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    wallet_id: before.id,
    entity,
    created_at: nowMs,
    updated_at: nowMs,
  });
  expect((await call(sandbox, 'getWallet', { path })).body).toEqual({ ...before, entity });

  expect(await refusal(sandbox, 'assignWalletEntity', { path, body: entity })).toEqual({
    status: 409,
    body: { error: 'the wallet already belongs to an entity', code: 'wallet_entity_already_set' },
  });
});

test('an unknown wallet or user is refused', async () => {
  await using sandbox = await startSandbox();
  const users = { type: 'user', id: 'did:service:cunknown' };
  expect(await refusal(sandbox, 'assignWalletEntity', { path, body: users })).toEqual({
    status: 404,
    body: { error: 'User not found' },
  });
  const organizations = { type: 'organization', id: 'cunknown' };
  expect(await refusal(sandbox, 'assignWalletEntity', { path, body: organizations })).toEqual({
    status: 404,
    body: { error: 'Organization not found' },
  });
});
