import type { CreateOrganizationRequest, UpdateOrganizationRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { requireKeyQuorums } from '../key-quorums/require-key-quorums.ts';
import { findOrganizationForUpdate } from './find-organization.ts';
import { OrganizationEntity, type StoredOrganization } from './organization.entity.ts';
import { OrganizationSecretEntity } from './organization-secret.entity.ts';

/**
 * Creates an organization.
 *
 * @throws ApiError invalid_data when the key quorum does not exist.
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
