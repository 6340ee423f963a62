import { invalidField } from '../../../errors.ts';
import type { CreateOrganizationRequest, UpdateOrganizationRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { requireKeyQuorums } from '../key-quorums/find-key-quorum.ts';
import { findOrganizationForUpdate, type OrganizationRow } from './find-organization.ts';

// CHOICE: where the contract sets no bound.
const MAX_NAME_CHARACTERS = 256;

/**
 * Makes an organization.
 *
 * @throws ApiError invalid_data when the key quorum is not there.
 */
export async function createOrganization(
  context: OperationContext,
  input: CreateOrganizationRequest,
): Promise<OrganizationRow> {
  checkName(input.display_name);
  await requireKeyQuorums(context, [input.default_key_quorum_id], '/default_key_quorum_id');
  const row: OrganizationRow = {
    id: context.ids.cuid(),
    app_id: context.app.id,
    display_name: input.display_name,
    default_key_quorum_id: input.default_key_quorum_id,
    created_at_ms: context.nowMs,
    updated_at_ms: context.nowMs,
  };
  await context.em.getKysely<Tables>().insertInto('organizations').values(row).execute();
  return row;
}

/**
 * Renames an organization or changes its default key quorum. Wallets that exist keep their owner.
 *
 * @throws ApiError not_found, invalid_data
 */
export async function updateOrganization(
  context: OperationContext,
  id: string,
  input: UpdateOrganizationRequest,
): Promise<OrganizationRow> {
  const row = await findOrganizationForUpdate(context, id);
  if (input.display_name !== undefined) checkName(input.display_name);
  if (input.default_key_quorum_id !== undefined) {
    await requireKeyQuorums(context, [input.default_key_quorum_id], '/default_key_quorum_id');
  }
  const change = {
    display_name: input.display_name ?? row.display_name,
    default_key_quorum_id: input.default_key_quorum_id ?? row.default_key_quorum_id,
    updated_at_ms: context.nowMs,
  };
  await context.em
    .getKysely<Tables>()
    .updateTable('organizations')
    .set(change)
    .where('id', '=', row.id)
    .execute();
  return { ...row, ...change };
}

/**
 * Removes an organization with its secrets. Its wallets keep their owner and the link to it.
 *
 * @throws ApiError not_found
 */
export async function deleteOrganization(context: OperationContext, id: string): Promise<void> {
  const row = await findOrganizationForUpdate(context, id);
  const database = context.em.getKysely<Tables>();
  await database.deleteFrom('organization_secrets').where('organization_id', '=', row.id).execute();
  await database.deleteFrom('organizations').where('id', '=', row.id).execute();
}

function checkName(name: string): void {
  if (name.length > MAX_NAME_CHARACTERS) {
    throw invalidField('/display_name', `must have at most ${MAX_NAME_CHARACTERS} characters`);
  }
}
