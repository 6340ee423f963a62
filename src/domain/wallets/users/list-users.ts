import { ApiError } from '../../../errors.ts';
import { olderThan } from '../../../storage/keyset-cursor.ts';
import { type StoredUser, type UserContext, withAccountsOfAll } from '../../access/user-records/find-user.ts';
import { userColumns } from '../../access/user-records/user-row.ts';
import type { Tables } from '../../tables.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

const MAX_PAGE = 100;

export interface UserPage {
  readonly users: StoredUser[];
  readonly nextCursor: string | null;
}

/**
 * One page of the app's users, newest first.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no user.
 */
export async function listUsers(
  context: UserContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<UserPage> {
  const query = context.em
    .getKysely<Tables>()
    .selectFrom('users')
    .select(userColumns)
    .where('app_id', '=', context.app.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    // One extra row shows whether another page follows.
    .limit(limit + 1);
  const rows = await (cursor === undefined
    ? query
    : query.where(olderThan(await readCursor(context, cursor), cursor))
  ).execute();
  const page = rows.slice(0, limit);
  return {
    users: await withAccountsOfAll(context, page),
    nextCursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

/** The creation time of a cursor's user, Unix ms. The user may have been deleted since. */
async function readCursor({ app, em }: UserContext, cursor: string): Promise<number> {
  if (/^did:service:[a-z0-9]{1,64}$/.test(cursor)) {
    for (const table of ['users', 'deleted_users'] as const) {
      const row = await em
        .getKysely<Tables>()
        .selectFrom(table)
        .select('created_at_ms')
        .where('id', '=', cursor)
        .where('app_id', '=', app.id)
        .executeTakeFirst();
      if (row !== undefined) return row.created_at_ms;
    }
  }
  const message = 'expected the `next_cursor` of a previous page';
  throw new ApiError('invalid_data', `cursor: ${message}`, {
    data: { issues: [{ in: 'query', pointer: '/cursor', message }] },
  });
}
