import type { LinkedAccount, User } from '../../generated/schemas.ts';

/** Members that identify an account, the clearest first. */
const identifying = [
  'address',
  'number',
  'phoneNumber',
  'email',
  'username',
  'custom_user_id',
  'telegram_user_id',
  'fid',
  'subject',
  'credential_id',
  'public_key',
] as const;

/** A linked account in words: `email alice@example.com`, `wallet 0x3b… on ethereum`. */
export function accountText(account: LinkedAccount): string {
  const values = account as Readonly<Record<string, unknown>>;
  const name = identifying.find((each) => values[each] !== undefined && values[each] !== null);
  return [
    account.type.replaceAll('_', ' '),
    ...(name === undefined ? [] : [String(values[name])]),
    ...(typeof values.chain_type === 'string' ? [`on ${values.chain_type}`] : []),
  ].join(' ');
}

/** A user in words: an account that is no wallet if there is one, or the id. */
export function userText({ id, linked_accounts: accounts }: Pick<User, 'id' | 'linked_accounts'>): string {
  const shown = accounts.find(({ type }) => type !== 'wallet' && type !== 'smart_wallet') ?? accounts[0];
  return shown === undefined ? id : accountText(shown);
}
