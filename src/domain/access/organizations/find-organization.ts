import { invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { OrganizationEntity, type StoredOrganization } from './organization.entity.ts';

export type OrganizationContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * An organization of the app.
 *
 * @throws ApiError not_found
 */
export async function findOrganization(
  context: OrganizationContext,
  id: string,
): Promise<StoredOrganization> {
  const organization = await getOrganization(context, id);
  if (organization === undefined) throw notFound('Organization');
  return organization;
}

/** An organization of the app, or undefined. */
export async function getOrganization(
  { app, em }: OrganizationContext,
  id: string,
): Promise<StoredOrganization | undefined> {
  if (!isOrganizationId(id)) return undefined;
  return (await em.findOne(OrganizationEntity, { id, appId: app.id })) ?? undefined;
}

/**
 * An organization that is about to change or to get a wallet, locked until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findOrganizationForUpdate(
  { app, em }: OrganizationContext,
  id: string,
): Promise<StoredOrganization> {
  const organization = isOrganizationId(id)
    ? await em.findOne(OrganizationEntity, { id, appId: app.id }, lockForUpdate)
    : null;
  if (organization === null) throw notFound('Organization');
  return organization;
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
): Promise<{ organizations: StoredOrganization[]; nextCursor: string | null }> {
  const after = cursor === undefined ? undefined : await getOrganization(context, cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  }
  const { page, nextCursor } = await findPage(
    context.em,
    OrganizationEntity,
    { appId: context.app.id },
    { after, limit },
  );
  return { organizations: page, nextCursor };
}

function isOrganizationId(id: string): boolean {
  return /^[a-z0-9]{1,64}$/.test(id);
}
