import { ApiError } from '../../../errors.ts';
import type {
  AssignWalletEntityRequest,
  WalletEntityAssignmentResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { admitWallet } from '../../access/organizations/wallet-entity.ts';
import type { Tables } from '../../tables.ts';
import { findWallet } from './find-wallet.ts';

// HOT: the `wallets` table is on the measured path (bench `sqlite`, `postgres`), so every write to it goes through
// Kysely.

/**
 * Assigns a wallet to a user or an organization, once. The owner does not change.
 *
 * Times: Unix ms.
 *
 * @throws ApiError not_found when the wallet or entity does not exist; wallet_entity_already_set,
 * wallet_entity_limit_exceeded.
 */
export async function assignWalletEntity(
  context: OperationContext,
  walletId: string,
  entity: AssignWalletEntityRequest,
): Promise<WalletEntityAssignmentResponse> {
  const wallet = await findWallet(context, walletId);
  if (wallet.entity_id !== null) throw alreadySet();
  await admitWallet(context, entity);
  const assignmentId = context.ids.cuid2();
  const { numUpdatedRows } = await context.em
    .getKysely<Tables>()
    .updateTable('wallets')
    .set({
      entity_type: entity.type,
      entity_id: entity.id,
      entity_assignment_id: assignmentId,
      entity_assigned_at_ms: context.nowMs,
    })
    .where('id', '=', wallet.id)
    .where('entity_id', 'is', null)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) throw alreadySet();
  return {
    id: assignmentId,
    wallet_id: wallet.id,
    entity: { id: entity.id, type: entity.type },
    created_at: context.nowMs,
    updated_at: context.nowMs,
  };
}

function alreadySet(): ApiError {
  return new ApiError('wallet_entity_already_set', undefined, { headers: { 'x-should-retry': 'false' } });
}
