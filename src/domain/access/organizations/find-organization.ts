import type { Selectable } from 'kysely';
import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { olderThan } from '../../../storage/keyset-cursor.ts';
import type { Tables } from '../../tables.ts';

export type OrganizationContext = Pick<OperationContext, 'app' | 'em'>;

/** A row of `organizations`, columns as they are stored. */
export type OrganizationRow = Selectable<Tables['organizations']>;

const MAX_PAGE = 100;

const columns = [
  'id',
  'app_id',
  'display_name',
  'default_key_quorum_id',
  'created_at_ms',
  'updated_at_ms',
] as const satisfies readonly (keyof OrganizationRow)[];

/**
 * An organization of the app.
 *
 * @throws ApiError not_found
 */
export async function findOrganization(context: OrganizationContext, id: string): Promise<OrganizationRow> {
  const row = await getOrganization(context, id);
  if (row === undefined) throw notFound('Organization');
  return row;
}

/** An organization of the app, or undefined. */
export async function getOrganization(
  context: OrganizationContext,
  id: string,
): Promise<OrganizationRow | undefined> {
  return selectOrganization(context, id)?.executeTakeFirst();
}

/**
 * An organization that is about to change or to get a wallet, held until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findOrganizationForUpdate(
  context: OrganizationContext,
  id: string,
): Promise<OrganizationRow> {
  const row = await selectOrganization(context, id)?.forUpdate().executeTakeFirst();
  if (row === undefined) throw notFound('Organization');
  return row;
}

/**
 * One page of the app's organizations, newest first.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no organization.
 */
export async function listOrganizations(
  context: OrganizationContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ organizations: OrganizationRow[]; nextCursor: string | null }> {
  const last = cursor === undefined ? undefined : await getOrganization(context, cursor);
  if (cursor !== undefined && last === undefined) throw invalidCursor();
  const query = context.em
    .getKysely<Tables>()
    .selectFrom('organizations')
    .select(columns)
    .where('app_id', '=', context.app.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    // One more than asked for tells whether another page follows.
    .limit(limit + 1);
  const rows = await (last === undefined
    ? query
    : query.where(olderThan(last.created_at_ms, last.id))
  ).execute();
  const organizations = rows.slice(0, limit);
  return {
    organizations,
    nextCursor: rows.length > limit ? (organizations.at(-1)?.id ?? null) : null,
  };
}

/** Undefined when the id cannot be one of an organization. */
function selectOrganization({ app, em }: OrganizationContext, id: string) {
  if (!/^[a-z0-9]{1,64}$/.test(id)) return undefined;
  return em
    .getKysely<Tables>()
    .selectFrom('organizations')
    .select(columns)
    .where('id', '=', id)
    .where('app_id', '=', app.id);
}

function invalidCursor(): ApiError {
  const message = 'expected the `next_cursor` of a page before';
  return new ApiError('invalid_data', `cursor: ${message}`, {
    data: { issues: [{ in: 'query', pointer: '/cursor', message }] },
  });
}
