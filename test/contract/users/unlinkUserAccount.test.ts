import { describe, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const email = { type: 'email', address: 'carol@example.com' } as const;
const wallet = '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a';

async function makeCarol(sandbox: TestSandbox, ...accounts: object[]) {
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [email, ...accounts] } as never,
  });
  return body;
}

describe('an account is identified by its handle', () => {
  test.each([
    { account: { type: 'phone', number: '+1 202 555 0143' }, handle: '(202) 555-0143' },
    { account: { type: 'wallet', chain_type: 'ethereum', address: wallet }, handle: wallet.toLowerCase() },
    { account: { type: 'github_oauth', subject: '583231', username: 'carol' }, handle: '583231' },
    { account: { type: 'github_oauth', subject: '583231', username: 'Carol' }, handle: 'carol' },
    { account: { type: 'discord_oauth', subject: '80351110224678912', username: 'carol' }, handle: 'carol' },
    {
      account: { type: 'discord_oauth', subject: '80351110224678912', username: 'carol' },
      handle: 'carol#0',
    },
    { account: { type: 'farcaster', fid: 4112, owner_address: wallet }, handle: '4112' },
    { account: { type: 'telegram', telegram_user_id: '77' }, handle: '77' },
    { account: { type: 'custom_auth', custom_user_id: 'carol' }, handle: 'carol' },
    {
      account: {
        type: 'passkey',
        credential_id: 'x'.repeat(1024),
        credential_username: 'carol',
        credential_public_key: 'pQEC',
        credential_device_type: 'multiDevice',
      },
      handle: 'x'.repeat(1024),
    },
  ])('an account is identified by its handle: $account.type by $handle', async ({ account, handle }) => {
    await using sandbox = await startSandbox();
    const carol = await makeCarol(sandbox, account);
    const { body } = await call(sandbox, 'unlinkUserAccount', {
      path: { user_id: carol.id },
      body: { type: account.type, handle } as never,
    });
    expect(body).toEqual({ ...carol, linked_accounts: carol.linked_accounts.slice(0, 1) });
    expect((await call(sandbox, 'getUser', { path: { user_id: carol.id } })).body).toEqual(body);
    // Free for another user.
    await call(sandbox, 'createUser', { body: { linked_accounts: [account] } as never });
  });
});

test('an account that the user does not have is not found', async () => {
  await using sandbox = await startSandbox();
  const { id } = await makeCarol(sandbox);
  const bodies = [
    { type: 'email', handle: 'dave@example.com' },
    { type: 'phone', handle: email.address },
    { type: 'custom:acme', handle: 'x' },
    { type: 'custom_auth', handle: '\ud800' },
  ];
  for (const body of bodies) {
    expect(await refusal(sandbox, 'unlinkUserAccount', { path: { user_id: id }, body })).toEqual({
      status: 404,
      body: { error: 'Linked account not found', code: 'linked_account_not_found' },
    });
  }
  const absent = await refusal(sandbox, 'unlinkUserAccount', {
    path: { user_id: `did:service:c${'0'.repeat(24)}` },
    body: { type: 'email', handle: email.address },
  });
  expect(absent).toEqual({ status: 404, body: { error: 'User not found' } });
});

test('embedded wallets and the only other account cannot be unlinked', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [email], wallets: [{ chain_type: 'ethereum', create_smart_wallet: true }] },
  });
  const path = { user_id: body.id };
  const [, embedded, smart] = body.linked_accounts as { address: string }[];
  const unlink = (type: string, handle: string) =>
    refusal(sandbox, 'unlinkUserAccount', { path, body: { type, handle } });
  expect(await unlink('wallet', embedded!.address)).toEqual({
    status: 400,
    body: { error: 'an embedded wallet cannot be unlinked', code: 'cannot_unlink_embedded_wallet' },
  });
  expect(await unlink('email', email.address)).toEqual({
    status: 400,
    body: {
      error: 'the only linked account of a user cannot be unlinked',
      code: 'cannot_unlink_sole_account',
    },
  });
  const unlinked = await call(sandbox, 'unlinkUserAccount', {
    path,
    body: { type: 'smart_wallet', handle: smart!.address },
  });
  expect(unlinked.body.linked_accounts).toEqual(body.linked_accounts.slice(0, 2));
});
