import { describe, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const known = (custom_user_id: string) => ({
  linked_accounts: [{ type: 'custom_auth' as const, custom_user_id }],
});

test('each entry has its own outcome, in order', async () => {
  await using sandbox = await startSandbox();
  await call(sandbox, 'createUser', { body: known('taken') });
  const { body } = await call(sandbox, 'batchCreateUsers', {
    body: {
      users: [
        { ...known('first'), wallets: [{ chain_type: 'ethereum', external_id: 'x' }] },
        known('taken'),
        { linked_accounts: [{ type: 'phone', number: '12' }] },
        known('first'),
        { ...known('second'), wallets: [{ chain_type: 'ethereum', external_id: 'x' }] },
        { linked_accounts: [...known('a').linked_accounts, ...known('b').linked_accounts] },
        { ...known('third'), custom_metadata: { tier: 'gold' } },
      ],
    },
  });
  const id = expect.stringMatching(/^did:service:c[0-9a-z]{24}$/);
  const taken = {
    success: false,
    error: 'the account is linked to another user',
    code: 'linked_to_another_user',
  };
  expect(body.results).toEqual([
    { index: 0, success: true, id },
    { index: 1, ...taken },
    {
      index: 2,
      success: false,
      error: '/linked_accounts/0/number: expected a phone number',
      code: 'invalid_data',
    },
    { index: 3, ...taken },
    {
      index: 4,
      success: false,
      error: 'a wallet with the external id `x` already exists',
      code: 'resource_conflict',
    },
    {
      index: 5,
      success: false,
      error: 'the user already has an account of this type',
      code: 'cannot_link_more_of_type',
    },
    { index: 6, success: true, id },
  ]);
  // What was refused left nothing behind.
  const second = await refusal(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'second' } });
  expect(second.status).toBe(404);
  const third = await call(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'third' } });
  expect(third.body.custom_metadata).toEqual({ tier: 'gold' });
});

describe('the older flags', () => {
  const chains = async (flags: object) => {
    await using sandbox = await startSandbox();
    await call(sandbox, 'batchCreateUsers', { body: { users: [{ ...known('carol'), ...flags }] } });
    const { body } = await call(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'carol' } });
    return body.linked_accounts.slice(1).map((account) => {
      return 'chain_type' in account ? account.chain_type : account.type;
    });
  };
  test.each([
    { flags: { create_ethereum_wallet: true }, made: ['ethereum'] },
    { flags: { create_embedded_wallet: true }, made: ['ethereum'] },
    { flags: { create_embedded_wallet: false }, made: [] },
    { flags: { create_n_ethereum_wallets: 3 }, made: ['ethereum', 'ethereum', 'ethereum'] },
    { flags: { create_n_embedded_wallets: 2 }, made: ['ethereum', 'ethereum'] },
    { flags: { create_ethereum_wallet: true, create_n_ethereum_wallets: 2 }, made: ['ethereum', 'ethereum'] },
    { flags: { create_solana_wallet: true }, made: ['solana'] },
    {
      flags: { create_ethereum_wallet: true, create_ethereum_smart_wallet: true, create_solana_wallet: true },
      made: ['ethereum', 'smart_wallet', 'solana'],
    },
  ])('the older flags: $flags', async ({ flags, made }) => {
    expect(await chains(flags)).toEqual(made);
  });
});

test.each([
  { fault: '21 users', users: Array.from({ length: 20 }, (_, index) => known(String(index))) },
  { fault: '0 wallets', users: [{ ...known('x'), create_n_ethereum_wallets: 0 }] },
  { fault: '11 wallets', users: [{ ...known('x'), create_n_ethereum_wallets: 11 }] },
  { fault: '11 wallets in the older spelling', users: [{ ...known('x'), create_n_embedded_wallets: 11 }] },
  { fault: 'a flag beside `wallets`', users: [{ ...known('x'), wallets: [], create_solana_wallet: false }] },
  {
    fault: 'two spellings',
    users: [{ ...known('x'), create_embedded_wallet: true, create_ethereum_wallet: true }],
  },
  {
    fault: 'two spellings of the numbers',
    users: [{ ...known('x'), create_n_embedded_wallets: 1, create_n_ethereum_wallets: 1 }],
  },
  { fault: 'a smart wallet of nothing', users: [{ ...known('x'), create_ethereum_smart_wallet: true }] },
  { fault: 'an unknown flag', users: [{ ...known('x'), create_tron_wallet: true }] },
])('the whole batch is refused: $fault', async ({ users }) => {
  await using sandbox = await startSandbox();
  const { status, body } = await refusal(sandbox, 'batchCreateUsers', {
    body: { users: [known('ok'), ...users] },
  });
  expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
  expect((await refusal(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'ok' } })).status).toBe(
    404,
  );
});

test('an empty batch is refused', async () => {
  await using sandbox = await startSandbox();
  const { status, body } = await refusal(sandbox, 'batchCreateUsers', { body: { users: [] } });
  expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
});
