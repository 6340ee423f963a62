import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../../src/generated/operations.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox } from '../../support/sandbox.ts';

// Every look-up by one account: which values find the user and which do not.
const cases: { id: OperationId; account: object; finds: object[]; finds_nobody: object[] }[] = [
  {
    id: 'getUserByEmailAddress',
    account: { type: 'email', address: 'Carol@Example.com' },
    finds: [{ address: 'carol@example.com' }, { address: 'CAROL@example.COM' }],
    finds_nobody: [{ address: 'carol@example.org' }],
  },
  {
    id: 'getUserByPhoneNumber',
    account: { type: 'phone', number: '+1 202 555 0143' },
    finds: [{ number: '2025550143' }, { number: '+1 (202) 555-0143' }],
    finds_nobody: [{ number: '+1 202 555 0144' }, { number: 'no number' }],
  },
  {
    id: 'getUserByCustomAuthID',
    account: { type: 'custom_auth', custom_user_id: 'Carol-1' },
    finds: [{ custom_user_id: 'Carol-1' }],
    finds_nobody: [{ custom_user_id: 'carol-1' }, { custom_user_id: 'Carol-1\ud800' }],
  },
  {
    id: 'getUserByWalletAddress',
    account: {
      type: 'wallet',
      chain_type: 'ethereum',
      address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a',
    },
    finds: [
      { address: '0xB6716976A3EBE8D39ACEB04372F22FF8E6802D7A' },
      { address: '0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A' },
    ],
    finds_nobody: [{ address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7b' }, { address: 'x' }],
  },
  {
    id: 'getUserByFarcasterID',
    account: { type: 'farcaster', fid: 4112, owner_address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a' },
    finds: [{ fid: 4112 }],
    finds_nobody: [{ fid: 4113 }, { fid: 1e300 }],
  },
  {
    id: 'getUserByTwitterSubject',
    account: { type: 'twitter_oauth', subject: 'S1', username: 'carol_1', name: 'Carol' },
    finds: [{ subject: 'S1' }],
    finds_nobody: [{ subject: 's1' }],
  },
  {
    id: 'getUserByTwitterUsername',
    account: { type: 'twitter_oauth', subject: 'S1', username: 'Carol_1', name: 'Carol' },
    finds: [{ username: 'Carol_1' }, { username: 'carol_1' }],
    finds_nobody: [{ username: 'carol_2' }],
  },
  {
    id: 'getUserByDiscordUsername',
    account: { type: 'discord_oauth', subject: '80351110224678912', username: 'Carol' },
    finds: [{ username: 'carol' }, { username: 'CAROL#0' }],
    finds_nobody: [{ username: 'carol#1234' }],
  },
  {
    id: 'getUserByGitHubUsername',
    account: { type: 'github_oauth', subject: '1', username: 'Carol-X' },
    finds: [{ username: 'carol-x' }],
    finds_nobody: [{ username: 'carol' }],
  },
  {
    id: 'getUserBySpotifySubject',
    account: { type: 'spotify_oauth', subject: 'carol.é' },
    finds: [{ subject: 'carol.é' }],
    finds_nobody: [{ subject: 'carol' }],
  },
  {
    id: 'getUserByInstagramUsername',
    account: { type: 'instagram_oauth', subject: '1', username: 'Carol.x' },
    finds: [{ username: 'carol.X' }],
    finds_nobody: [{ username: 'carol' }],
  },
  {
    id: 'getUserByTelegramUserID',
    account: { type: 'telegram', telegram_user_id: '5123' },
    finds: [{ telegram_user_id: '5123' }],
    finds_nobody: [{ telegram_user_id: '5124' }],
  },
  {
    id: 'getUserByTelegramUsername',
    account: { type: 'telegram', telegram_user_id: '5123', username: 'Carol' },
    finds: [{ username: 'carol' }],
    finds_nobody: [{ username: '5123' }],
  },
  {
    id: 'getUserByTwitchUsername',
    account: { type: 'twitch_oauth', subject: '1', username: 'carol_x' },
    finds: [{ username: 'Carol_X' }],
    finds_nobody: [{ username: '1' }],
  },
];

describe.each(cases)('$id', ({ id, account, finds, finds_nobody }) => {
  test('returns the user or 404', async () => {
    await using sandbox = await startSandbox({ seedData: false });
    const { body } = await call(sandbox, 'createUser', { body: { linked_accounts: [account] } as never });
    const other = await asOtherApp(sandbox);
    const absent = { status: 404, body: { error: 'User not found' } };
    for (const look of finds) {
      expect((await call(sandbox, id, { body: look } as never)).body).toEqual(body);
      expect(await refusal(other, id, { body: look })).toEqual(absent);
    }
    for (const look of finds_nobody) expect(await refusal(sandbox, id, { body: look })).toEqual(absent);
  });
});

test('embedded and smart wallets are found by their addresses', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }],
      wallets: [{ chain_type: 'ethereum', create_smart_wallet: true }, { chain_type: 'sui' }],
    },
  });
  const [, wallet, smart, sui] = body.linked_accounts as { address: string }[];
  for (const address of [wallet!.address.toLowerCase(), sui!.address]) {
    expect((await call(sandbox, 'getUserByWalletAddress', { body: { address } })).body).toEqual(body);
  }
  const { address } = smart!;
  expect((await call(sandbox, 'getUserBySmartWalletAddress', { body: { address } })).body).toEqual(body);
  const absent = await refusal(sandbox, 'getUserBySmartWalletAddress', {
    body: { address: wallet!.address },
  });
  expect(absent.status).toBe(404);
});

test('of two users with the same name, the one whose account was verified last is found', async () => {
  await using sandbox = await startSandbox();
  const names = (subject: string) => ({ type: 'github_oauth', subject, username: 'carol' }) as const;
  const first = await call(sandbox, 'createUser', { body: { linked_accounts: [names('1')] } });
  sandbox.clock.advance(1000);
  const second = await call(sandbox, 'createUser', { body: { linked_accounts: [names('2')] } });
  const find = async () =>
    (await call(sandbox, 'getUserByGitHubUsername', { body: { username: 'Carol' } })).body.id;
  expect(await find()).toBe(second.body.id);
  sandbox.clock.advance(1000);
  await call(sandbox, 'linkUserAccount', { path: { user_id: first.body.id }, body: names('1') });
  expect(await find()).toBe(first.body.id);
});
