import { expect, test } from 'vitest';
import { linkAccount } from '../../../src/domain/wallets/users/linked-accounts.ts';
import { inTransaction } from '../../integration/contexts.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const start = Date.UTC(2026, 0, 1) / 1000;
const github = { type: 'github_oauth', subject: '583231', username: 'carol', name: 'Carol' } as const;

async function makeUser(sandbox: TestSandbox, name: string): Promise<string> {
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: `${name}@example.com` }] },
  });
  return body.id;
}

test('a new account is appended', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeUser(sandbox, 'carol');
  const { body } = await call(sandbox, 'linkUserAccount', { path: { user_id }, body: github });
  const verified = { verified_at: start, first_verified_at: start, latest_verified_at: start };
  expect(body.linked_accounts).toEqual([
    { type: 'email', address: 'carol@example.com', ...verified },
    { ...github, email: null, ...verified },
  ]);
  expect((await call(sandbox, 'getUser', { path: { user_id } })).body).toEqual(body);
});

test('linking the same account again updates it in place', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeUser(sandbox, 'carol');
  await call(sandbox, 'linkUserAccount', { path: { user_id }, body: github });
  await call(sandbox, 'linkUserAccount', {
    path: { user_id },
    body: { type: 'custom_auth', custom_user_id: 'carol' },
  });
  sandbox.clock.advance(5000);
  const { body } = await call(sandbox, 'linkUserAccount', {
    path: { user_id },
    body: { ...github, username: 'carol-king' },
  });
  expect(body.linked_accounts.map((account) => account.type)).toEqual([
    'email',
    'github_oauth',
    'custom_auth',
  ]);
  expect(body.linked_accounts[1]).toEqual({
    ...github,
    username: 'carol-king',
    email: null,
    verified_at: start + 5,
    first_verified_at: start,
    latest_verified_at: start + 5,
  });
  expect((await call(sandbox, 'getUser', { path: { user_id } })).body).toEqual(body);
  const renamed = await refusal(sandbox, 'getUserByGitHubUsername', { body: { username: 'carol' } });
  expect(renamed.status).toBe(404);
});

test('an embedded wallet that is linked as an external one stays embedded', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }],
      wallets: [{ chain_type: 'ethereum' }],
    },
  });
  const { address } = body.linked_accounts[1] as { address: string };
  const again = await call(sandbox, 'linkUserAccount', {
    path: { user_id: body.id },
    body: { type: 'wallet', chain_type: 'ethereum', address },
  });
  expect(again.body).toEqual(body);
});

test('several wallets and passkeys can be linked', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeUser(sandbox, 'carol');
  for (const digit of ['1', '2']) {
    await call(sandbox, 'linkUserAccount', {
      path: { user_id },
      body: { type: 'wallet', chain_type: 'ethereum', address: `0x${digit.repeat(40)}` },
    });
    await call(sandbox, 'linkUserAccount', {
      path: { user_id },
      body: {
        type: 'passkey',
        credential_id: digit,
        credential_username: 'carol',
        credential_public_key: 'pQEC',
        credential_device_type: 'singleDevice',
      },
    });
  }
  const { body } = await call(sandbox, 'getUser', { path: { user_id } });
  expect(body.linked_accounts.map((account) => account.type)).toEqual([
    'email',
    'wallet',
    'passkey',
    'wallet',
    'passkey',
  ]);
});

test('a second account of a kind that is limited to one is refused', async () => {
  await using sandbox = await startSandbox();
  const user_id = await makeUser(sandbox, 'carol');
  const { status, body } = await refusal(sandbox, 'linkUserAccount', {
    path: { user_id },
    body: { type: 'email', address: 'carol@example.org' },
  });
  expect({ status, body }).toEqual({
    status: 400,
    body: {
      error: 'the user already has an account of this type',
      code: 'cannot_link_more_of_type',
      data: {
        issues: [{ in: 'body', pointer: '/type', message: 'a user has at most one account of type `email`' }],
      },
    },
  });
});

test('an account of another user is refused and stays with that user', async () => {
  await using sandbox = await startSandbox();
  const [carol, dave] = [await makeUser(sandbox, 'carol'), await makeUser(sandbox, 'dave')];
  await call(sandbox, 'linkUserAccount', { path: { user_id: carol }, body: github });
  const { status, body } = await refusal(sandbox, 'linkUserAccount', {
    path: { user_id: dave },
    body: github,
  });
  expect({ status, body }).toEqual({
    status: 409,
    body: { error: 'the account is linked to another user', code: 'linked_to_another_user' },
  });
  expect((await call(sandbox, 'getUser', { path: { user_id: dave } })).body.linked_accounts).toHaveLength(1);
});

test('the 501st account is refused', async () => {
  await using sandbox = await startSandbox();
  const wallets = (count: number, from: number) =>
    Array.from({ length: count }, (_, index) => ({
      type: 'wallet' as const,
      chain_type: 'ethereum' as const,
      address: `0x${String(from + index).padStart(40, '0')}`,
    }));
  const { body } = await call(sandbox, 'createUser', { body: { linked_accounts: wallets(100, 0) } });
  // By the verb: 400 responses with all accounts take ten times as long.
  for (let from = 100; from < 500; from += 20) {
    await inTransaction(
      sandbox.database,
      async (context) => {
        for (const account of wallets(20, from)) await linkAccount(context, body.id, account);
      },
      { appId: sandbox.appId },
    );
  }
  const refused = await refusal(sandbox, 'linkUserAccount', {
    path: { user_id: body.id },
    body: { type: 'custom_auth', custom_user_id: 'carol' },
  });
  const full = {
    status: 400,
    body: { error: 'a user has at most 500 linked accounts', code: 'max_accounts_reached' },
  };
  expect(refused).toEqual(full);
  // An embedded wallet is an account too.
  const made = await refusal(sandbox, 'pregenerateUserWallets', {
    path: { user_id: body.id },
    body: { wallets: [{ chain_type: 'ethereum' }] },
  });
  expect(made).toEqual(full);
});

test('an unknown user', async () => {
  await using sandbox = await startSandbox();
  const user_id = `did:service:c${'0'.repeat(24)}`;
  expect(await refusal(sandbox, 'linkUserAccount', { path: { user_id }, body: github })).toEqual({
    status: 404,
    body: { error: 'User not found' },
  });
  const free = await refusal(sandbox, 'getUserByGitHubUsername', { body: { username: 'carol' } });
  expect(free.status).toBe(404);
});
