import type { CreateUserRequest } from '../src/generated/schemas.ts';

export const aliceUser = {
  linked_accounts: [
    { type: 'email', address: 'alice@example.com' },
    { type: 'custom_auth', custom_user_id: 'alice' },
  ],
  custom_metadata: { tier: 'gold' },
} satisfies CreateUserRequest;

export const bobUser = {
  linked_accounts: [{ type: 'custom_auth', custom_user_id: 'bob' }],
} satisfies CreateUserRequest;
