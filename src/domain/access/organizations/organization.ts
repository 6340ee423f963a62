import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type {
  CreateOrganizationRequest,
  Organization,
  UpdateOrganizationRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { requireKeyQuorums } from '../key-quorums/find-key-quorum.ts';
import { lockUser } from '../user-records/find-user.ts';
import {
  OrganizationEntity,
  OrganizationSecretEntity,
  type StoredOrganization,
} from './organization.entity.ts';

export type OrganizationContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * Finds an organization of the app.
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

/** Returns an organization of the app, or undefined. */
export async function getOrganization(
  { app, em }: OrganizationContext,
  id: string,
): Promise<StoredOrganization | undefined> {
  if (!isOrganizationId(id)) return undefined;
  return (await em.findOne(OrganizationEntity, { id, appId: app.id })) ?? undefined;
}

/**
 * Finds an organization that is about to change or to get a wallet, and locks it until the transaction ends.
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
 * Lists one page of the app's organizations, newest first.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not an organization of the app.
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

/**
 * Creates an organization.
 *
 * @throws ApiError invalid_data when its default key quorum does not exist.
 */
export async function createOrganization(
  context: OperationContext,
  input: CreateOrganizationRequest,
): Promise<StoredOrganization> {
  await requireKeyQuorums(context, [input.default_key_quorum_id], '/default_key_quorum_id');
  const organization = context.em.create(OrganizationEntity, {
    id: context.ids.cuid(),
    appId: context.app.id,
    displayName: input.display_name,
    defaultKeyQuorumId: input.default_key_quorum_id,
    createdAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  });
  await context.em.flush();
  return organization;
}

/**
 * Renames an organization or changes its default key quorum. Existing wallets keep their owner.
 *
 * @throws ApiError not_found, invalid_data
 */
export async function updateOrganization(
  context: OperationContext,
  id: string,
  input: UpdateOrganizationRequest,
): Promise<StoredOrganization> {
  const organization = await findOrganizationForUpdate(context, id);
  if (input.default_key_quorum_id !== undefined) {
    await requireKeyQuorums(context, [input.default_key_quorum_id], '/default_key_quorum_id');
  }
  organization.displayName = input.display_name ?? organization.displayName;
  organization.defaultKeyQuorumId = input.default_key_quorum_id ?? organization.defaultKeyQuorumId;
  organization.updatedAtMs = context.nowMs;
  await context.em.flush();
  return organization;
}

/**
 * Deletes an organization and its secrets. Its wallets keep their owner and their link to it.
 *
 * @throws ApiError not_found
 */
export async function deleteOrganization(context: OperationContext, id: string): Promise<void> {
  const organization = await findOrganizationForUpdate(context, id);
  await context.em.nativeDelete(OrganizationSecretEntity, { organizationId: organization.id });
  await context.em.remove(organization).flush();
}

/** Converts an organization to wire form, with times in Unix ms. */
export function organizationView(organization: StoredOrganization): Organization {
  return {
    id: organization.id,
    display_name: organization.displayName,
    default_key_quorum_id: organization.defaultKeyQuorumId,
    created_at: organization.createdAtMs,
    updated_at: organization.updatedAtMs,
  };
}

// KYSELY: counts rows of `wallets`, whose entity belongs to a higher layer.

const MAX_ORGANIZATION_WALLETS = 150;

/** The user or organization to which a wallet is assigned. */
export interface WalletEntity {
  readonly id: string;
  readonly type: 'user' | 'organization';
}

/**
 * Returns the key quorum that owns a new wallet of this user or organization if the request names no owner. Returns
 * undefined if there is none.
 */
export async function defaultOwnerOf(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  entity: WalletEntity | undefined,
): Promise<string | undefined> {
  if (entity?.type !== 'organization') return undefined;
  const row = await em
    .getKysely<Tables>()
    .selectFrom('organizations')
    .select('default_key_quorum_id as ownerId')
    .where('id', '=', entity.id)
    .where('app_id', '=', app.id)
    .executeTakeFirst();
  return row?.ownerId;
}

/**
 * Checks that a user or organization exists and can have one more wallet, and locks it until the transaction ends.
 *
 * @returns the key quorum that owns the wallet if the request names no owner; null for a user.
 * @throws ApiError not_found; wallet_entity_limit_exceeded for an organization with 150 wallets.
 */
export async function admitWallet(
  context: Pick<OperationContext, 'app' | 'em'>,
  { id, type }: WalletEntity,
): Promise<string | null> {
  if (type === 'user') {
    await lockUser(context, id);
    return null;
  }
  const organization = await findOrganizationForUpdate(context, id);
  const { count } = await context.em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('entity_id', '=', organization.id)
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_ORGANIZATION_WALLETS) {
    throw new ApiError('wallet_entity_limit_exceeded', undefined, { headers: { 'x-should-retry': 'false' } });
  }
  return organization.defaultKeyQuorumId;
}
