import { expect, test } from 'vitest';
import { newSuffix, withFreshNames } from '../../../src/web/docs/sign-payload.ts';

test('external ids and the accounts of new users are fresh; other values stay', () => {
  const example = {
    external_id: 'treasury-01',
    display_name: 'Treasury',
    linked_accounts: [
      { type: 'email', address: 'alice@example.com' },
      { type: 'custom_auth', custom_user_id: 'acme-user-7' },
      { type: 'wallet', address: '0x51cA8ff9f1C0a99f88E86B8112eA3237F55374cA', chain_type: 'ethereum' },
    ],
    wallets: [{ chain_type: 'solana', external_id: 'alice-solana', address: 'kept@example.com' }],
  };
  expect(withFreshNames(example, 'k3f9x2')).toEqual({
    external_id: 'treasury-01-k3f9x2',
    display_name: 'Treasury',
    linked_accounts: [
      { type: 'email', address: 'alice-k3f9x2@example.com' },
      { type: 'custom_auth', custom_user_id: 'acme-user-7-k3f9x2' },
      { type: 'wallet', address: '0x51cA8ff9f1C0a99f88E86B8112eA3237F55374cA', chain_type: 'ethereum' },
    ],
    wallets: [{ chain_type: 'solana', external_id: 'alice-solana-k3f9x2', address: 'kept@example.com' }],
  });
  expect([withFreshNames(undefined, 'x'), withFreshNames('alice@example.com', 'x')]).toEqual([
    undefined,
    'alice@example.com',
  ]);
  expect(newSuffix()).toMatch(/^[0-9a-z]{8,9}$/);
});
