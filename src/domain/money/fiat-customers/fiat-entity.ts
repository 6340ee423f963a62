import type { PlanContext } from '../../../operation-context.ts';
import { findOrganization, findOrganizationForUpdate } from '../../access/organizations/find-organization.ts';
import { findUser, lockUser } from '../../access/user-records/find-user.ts';

/** A user or an organization, which a provider verifies as a person or as a business. */
export interface FiatEntity {
  readonly type: 'user' | 'organization';
  /** As given in a path: a user's may lack `did:service:`. */
  readonly id: string;
}

/**
 * A user or an organization of the app, with its full id.
 *
 * @throws ApiError not_found
 */
export async function findFiatEntity(
  context: Pick<PlanContext, 'app' | 'em'>,
  { type, id }: FiatEntity,
): Promise<FiatEntity> {
  return type === 'user'
    ? { type, id: (await findUser(context, id)).row.id }
    : { type, id: (await findOrganization(context, id)).id };
}

/**
 * Locks a user or an organization against deletion until the transaction ends.
 *
 * @param entity with its full id.
 * @throws ApiError not_found
 */
export async function holdFiatEntity(
  context: Pick<PlanContext, 'app' | 'em'>,
  { type, id }: FiatEntity,
): Promise<void> {
  await (type === 'user' ? lockUser(context, id) : findOrganizationForUpdate(context, id));
}
