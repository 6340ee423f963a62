import { makeIds, systemEntropy } from '../../src/adapters/runtime.ts';
import { createApp } from '../../src/domain/access/apps/app.ts';
import { getApp } from '../../src/domain/access/apps/find-app.ts';
import { lookupKey } from '../../src/domain/base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { encodeLinkedAccount } from '../../src/domain/wallets/users/linked-account-kinds.ts';
import { searchTermsOf } from '../../src/domain/wallets/users/list-users.ts';
import type { LinkedAccountInput } from '../../src/generated/schemas.ts';
import type { Database } from '../../src/storage/open-database.ts';

/** Created at this time; each older user a second earlier. */
const NEWEST_MS = Date.UTC(2026, 0, 1);
// Users per statement: SQLite accepts 32,766 values, and a linked account has 12.
const USERS_AT_ONCE = 500;

/** The id of the user with this number. */
export function seededUserId(index: number): string {
  return `did:service:c${String(index).padStart(24, '0')}`;
}

function accountsOf(index: number): LinkedAccountInput[] {
  const name = `user-${index}`;
  return [
    { type: 'email', address: `${name}@example.com` },
    { type: 'custom_auth', custom_user_id: name },
    { type: 'github_oauth', subject: String(index), username: name },
  ];
}

function rowsOf(appId: string, index: number, createdAtMs: number) {
  const userId = seededUserId(index);
  const accounts = accountsOf(index).map((input, position) => {
    const record = encodeLinkedAccount(input, '');
    return { record, id: `${position}${String(index).padStart(23, '0')}`, position };
  });
  return {
    user: {
      id: userId,
      app_id: appId,
      custom_metadata: null,
      has_accepted_terms: 0,
      is_guest: 0,
      mfa_methods: '[]',
      frozen_at_ms: null,
      created_at_ms: createdAtMs,
    },
    accounts: accounts.map(({ record, id, position }) => ({
      id,
      app_id: appId,
      user_id: userId,
      position,
      type: record.type,
      subject: lookupKey(record.subject),
      username: record.username === null ? null : lookupKey(record.username),
      wallet_id: null,
      details: JSON.stringify(record.details),
      verified_at_ms: createdAtMs,
      first_verified_at_ms: createdAtMs,
      latest_verified_at_ms: createdAtMs,
    })),
    terms: accounts.flatMap(({ record, id }) =>
      searchTermsOf(record).map((term) => ({
        app_id: appId,
        term,
        user_created_at_ms: createdAtMs,
        user_id: userId,
        account_id: id,
      })),
    ),
  };
}

/**
 * Creates the users 0 to `count - 1` of an app, and the app if it does not exist; those that are there are left out. User N
 * has the id did:service:cNNN… (24 digits), user-N@example.com, the custom user id user-N and the GitHub name user-N.
 */
export async function seedUsers(
  database: Database,
  {
    appId,
    count,
    report = () => undefined,
  }: { appId: string; count: number; report?: (made: number) => void },
): Promise<void> {
  const em = database.orm.em.fork();
  if ((await getApp(em, appId)) === undefined) {
    const context = { em, entropy: systemEntropy, ids: makeIds(systemEntropy), nowMs: NEWEST_MS };
    await createApp(context, { id: appId, name: 'Seeded' });
  }
  for (let from = 0; from < count; from += USERS_AT_ONCE) {
    const indexes = Array.from({ length: Math.min(USERS_AT_ONCE, count - from) }, (_, index) => from + index);
    const rows = indexes.map((index) => rowsOf(appId, index, NEWEST_MS - (count - index) * 1000));
    await database.orm.em.fork().transactional(async (inner) => {
      const kysely = (inner as typeof em).getKysely<Tables>();
      const tables = {
        users: rows.map(({ user }) => user),
        linked_accounts: rows.flatMap(({ accounts }) => accounts),
        user_search_terms: rows.flatMap(({ terms }) => terms),
      };
      for (const [table, values] of Object.entries(tables)) {
        await kysely
          .insertInto(table as 'users')
          .values(values as (typeof tables)['users'])
          .onConflict((conflict) => conflict.doNothing())
          .execute();
      }
    });
    report(from + indexes.length);
  }
  // The query planner needs statistics of the new rows.
  await database.orm.em.fork().execute('analyze');
}
