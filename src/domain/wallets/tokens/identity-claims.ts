import type { LinkedAccount, User } from '../../../generated/schemas.ts';

/** Short name of a claim's member -> name in the linked account. */
type Members = Readonly<Record<string, string>>;

const withName = { subject: 'subject', email: 'email', name: 'name' };
const withUsername = { subject: 'subject', username: 'username' };

const membersOf: Readonly<Record<string, Members>> = {
  email: { address: 'address' },
  phone: { phone_number: 'phoneNumber' },
  wallet: {
    address: 'address',
    chain_type: 'chain_type',
    wallet_client_type: 'wallet_client_type',
    id: 'id',
  },
  smart_wallet: { address: 'address', smart_wallet_type: 'smart_wallet_type' },
  farcaster: { fid: 'fid', username: 'username', oa: 'owner_address' },
  google_oauth: withName,
  line_oauth: withName,
  linkedin_oauth: withName,
  apple_oauth: { subject: 'subject', email: 'email' },
  spotify_oauth: withName,
  twitter_oauth: { subject: 'subject', username: 'username', name: 'name', pfp: 'profile_picture_url' },
  discord_oauth: withUsername,
  github_oauth: withUsername,
  instagram_oauth: withUsername,
  tiktok_oauth: withUsername,
  twitch_oauth: withUsername,
  custom_auth: { custom_user_id: 'custom_user_id' },
  telegram: { telegram_user_id: 'telegram_user_id', username: 'username' },
  passkey: { credential_id: 'credential_id' },
  cross_app: {
    subject: 'subject',
    provider_app_id: 'provider_app_id',
    embedded_wallets: 'embedded_wallets',
    smart_wallets: 'smart_wallets',
  },
};

/**
 * The claims of a user's identity token: `cr`, the creation time as a string of Unix seconds; `guest`, `t` for a
 * guest; `linked_accounts` and `custom_metadata`, each a JSON string.
 */
export function identityClaims(user: User): Record<string, string> {
  return {
    cr: String(user.created_at),
    ...(user.is_guest ? { guest: 't' } : {}),
    linked_accounts: JSON.stringify(user.linked_accounts.map(compactAccount)),
    ...(user.custom_metadata === undefined ? {} : { custom_metadata: JSON.stringify(user.custom_metadata) }),
  };
}

// Tokens are sent in headers, so accounts are reduced to what identifies them. `lv`: when it was last verified.
function compactAccount(account: LinkedAccount): Record<string, unknown> {
  const fields = new Map<string, unknown>(Object.entries(account));
  const members = Object.entries(membersOf[account.type] ?? {}).flatMap(
    ([short, long]): [string, unknown][] => {
      const value = fields.get(long);
      return value === undefined || value === null ? [] : [[short, value]];
    },
  );
  return { type: account.type, ...Object.fromEntries(members), lv: account.latest_verified_at };
}
