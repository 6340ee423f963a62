import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { findKeyQuorum } from './find-key-quorum.ts';
import { KeyQuorumEntity } from './key-quorum.entity.ts';
import { KeyQuorumChangeEntity } from './key-quorum-change.entity.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';
import { listKeyQuorumReferences } from './key-quorum-references.ts';
import { KeyQuorumSealEntity } from './key-quorum-seal.entity.ts';
import { lockKeyQuorum } from './lock-key-quorum.ts';

/**
 * Deletes a key quorum that nothing refers to. Requires its own members' authorization.
 *
 * @throws ApiError not_found, authorization_key_has_associated_wallets, and what `requireOwner` throws.
 */
export async function deleteKeyQuorum(context: OperationContext, id: string): Promise<void> {
  await lockKeyQuorum(context, id);
  await findKeyQuorum(context, id);
  await requireOwner(context, { ownerId: id });
  const named = await listKeyQuorumReferences(context, id);
  if (named.length > 0) {
    throw new ApiError(
      'authorization_key_has_associated_wallets',
      `the key quorum cannot be deleted: it is ${named.join(' and ')}`,
    );
  }
  await context.em.nativeDelete(KeyQuorumMemberEntity, { keyQuorumId: id });
  await context.em.nativeDelete(KeyQuorumChangeEntity, { keyQuorumId: id });
  await context.em.nativeDelete(KeyQuorumSealEntity, { id });
  await context.em.nativeDelete(KeyQuorumEntity, { id });
  await dismissIntentsAbout(context, { resource: 'key quorum', id, change: 'deleted' });
}
