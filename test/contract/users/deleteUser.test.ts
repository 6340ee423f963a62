import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const carol = {
  linked_accounts: [
    { type: 'email' as const, address: 'carol@example.com' },
    { type: 'phone' as const, number: '+1 202 555 0143' },
  ],
  wallets: [{ chain_type: 'ethereum' as const, external_id: 'carol' }],
};

test('the user is deleted, the accounts are free, and the wallet stays but can no longer sign', async () => {
  await using sandbox = await startSandbox();
  const made = await call(sandbox, 'createUser', { body: carol });
  const path = { user_id: made.body.id };
  const deleted = await call(sandbox, 'deleteUser', { path });
  expect({ status: deleted.status, body: deleted.body }).toEqual({ status: 204, body: undefined });

  const absent = { status: 404, body: { error: 'User not found' } };
  expect(await refusal(sandbox, 'getUser', { path })).toEqual(absent);
  expect(await refusal(sandbox, 'deleteUser', { path })).toEqual(absent);
  expect(await refusal(sandbox, 'searchUsers', { body: { searchTerm: 'carol@example.com' } })).toEqual(
    absent,
  );
  expect((await call(sandbox, 'listUsers', {})).body.data.map((user) => user.id)).not.toContain(made.body.id);

  const wallet = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_carol' } });
  expect(wallet.body.address).toBe((made.body.linked_accounts[2] as { address: string }).address);
  const signing = await refusal(sandbox, 'walletRpc', {
    path: { wallet_id: wallet.body.id },
    body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
  });
  expect(signing.status).toBe(401);
  const owner = await refusal(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { user_id: made.body.id } },
  });
  expect({ status: owner.status, code: owner.body.code }).toEqual({ status: 400, code: 'invalid_data' });

  const again = await call(sandbox, 'createUser', { body: { linked_accounts: carol.linked_accounts } });
  expect(again.body.id).not.toBe(made.body.id);
  expect(again.body.linked_accounts).toHaveLength(2);
});
