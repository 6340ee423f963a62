import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import type { Tables } from '../../tables.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { findPolicyForUpdate } from './find-policy.ts';
import { PolicyEntity } from './policy.entity.ts';
import { deletePolicySeal } from './policy-seals.ts';

/**
 * Deletes a policy that no wallet or signer uses. Requires the owner's authorization.
 *
 * @throws ApiError not_found, invalid_state while it is in use, and what `requireOwner` throws.
 */
export async function deletePolicy(context: OperationContext, id: string): Promise<void> {
  const policy = await findPolicyForUpdate(context, id);
  await requireOwner(context, { ownerId: policy.ownerId });
  // CHOICE: refused, because deleting it would leave wallets without their policy.
  if (await isInUse(context, id)) {
    throw new ApiError(
      'invalid_state',
      'the policy cannot be deleted: a wallet or one of its signers uses it',
    );
  }
  await deletePolicySeal(context, id);
  await context.em.nativeDelete(PolicyEntity, { id });
  await dismissIntentsAbout(context, { resource: 'policy', id, change: 'deleted' });
}

/** HOT: reads `wallets`, whose entity belongs to a higher layer (bench `sqlite`, `postgres`). */
async function isInUse({ em }: Pick<OperationContext, 'em'>, id: string): Promise<boolean> {
  const database = em.getKysely<Tables>();
  const wallet = await database
    .selectFrom('wallets')
    .select('id')
    .where('policy_id', '=', id)
    .limit(1)
    .executeTakeFirst();
  if (wallet !== undefined) return true;
  const signer = await database
    .selectFrom('wallet_signers')
    .select('wallet_id')
    .where('override_policy_id', '=', id)
    .limit(1)
    .executeTakeFirst();
  return signer !== undefined;
}
