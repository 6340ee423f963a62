import { ApiError } from '../../../errors.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { loadQuorums } from '../../access/owners/load-quorums.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { FiatEntity } from '../fiat-customers/fiat-entity.ts';

/**
 * The user or organization that a wallet belongs to.
 *
 * CHOICE: a wallet without an assigned entity belongs to the user who is its only owner.
 *
 * @throws ApiError invalid_state for a wallet without an entity.
 */
export async function requireWalletEntity(
  context: Pick<PlanContext, 'app' | 'em' | 'nowMs'>,
  wallet: WalletRow,
): Promise<FiatEntity> {
  const { entity_type: type, entity_id: id, owner_id: ownerId } = wallet;
  if (id !== null) return { type: type as FiatEntity['type'], id };
  const owner = ownerId === null ? undefined : (await loadQuorums(context, [ownerId])).get(ownerId);
  const members =
    owner === undefined ? 0 : owner.publicKeys.length + owner.users.length + owner.quorums.length;
  const user = owner?.users[0];
  if (members === 1 && user !== undefined) return { type: 'user', id: user.userId };
  throw new ApiError('invalid_state', 'the wallet belongs to no user and no organization');
}
