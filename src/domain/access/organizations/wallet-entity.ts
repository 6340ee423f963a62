import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { lockUser } from '../user-records/find-user.ts';
import { findOrganizationForUpdate } from './find-organization.ts';

// HOT: part of creating a wallet; it counts rows of `wallets` (bench `sqlite`, `postgres`).

/** How many wallets an organization can have. */
const MAX_ORGANIZATION_WALLETS = 150;

/** The user or organization a wallet is assigned to. */
export interface WalletEntity {
  readonly id: string;
  readonly type: 'user' | 'organization';
}

/** The key quorum that owns a new wallet of this entity if no other owner is named; undefined without one. */
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
 * Ensures that a user or organization exists and can have one more wallet, and locks it until the transaction ends.
 *
 * Result: the key quorum that owns the wallet if no other owner is named; null for a user.
 *
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
