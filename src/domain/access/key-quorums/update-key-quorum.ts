import type { PinnedUsers } from '../../../authorization/user-vouchers.ts';
import { invalidField } from '../../../errors.ts';
import type { UpdateKeyQuorumRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { checkMembers, readPublicKeys } from './check-members.ts';
import { findKeyQuorum, type KeyQuorumContext, type StoredKeyQuorum } from './find-key-quorum.ts';
import { KeyQuorumEntity } from './key-quorum.entity.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';
import { lockKeyQuorum } from './lock-key-quorum.ts';
import { recordQuorumChange } from './quorum-records.ts';
import { storeMembers } from './store-members.ts';
import { subjectsOf } from './voucher-keys.ts';

/**
 * Updates a key quorum: given lists replace the stored ones, the others stay. Requires authorization by the members
 * and threshold from before the change.
 *
 * @throws ApiError not_found, invalid_data, and what `requireOwner` throws.
 */
export async function updateKeyQuorum(
  context: OperationContext,
  id: string,
  change: UpdateKeyQuorumRequest,
): Promise<StoredKeyQuorum> {
  await lockKeyQuorum(context, id);
  const before = await findKeyQuorum(context, id);
  await requireOwner(context, { ownerId: id });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const after = await checkKeyQuorumChange(context, before, change);
  const quorum = await context.em.findOneOrFail(KeyQuorumEntity, { id });
  const subjects = quorum.voucher === null ? undefined : await subjectsAfter(context, after);
  await recordQuorumChange(context, { before, after, subjects });
  quorum.displayName = after.displayName;
  quorum.authorizationThreshold = after.threshold;
  // INVARIANT: an implicit quorum that was changed is no longer reused for its original owner.
  quorum.implicitFor = null;
  await context.em.flush();
  await storeMembers(context, after, subjects);
  await dismissIntentsAbout(context, { resource: 'key quorum', id, change: 'changed' });
  return after;
}

/** Those who stay keep what they were pinned by: the first record of the key quorum says so. */
async function subjectsAfter(
  context: OperationContext,
  { id, userIds }: StoredKeyQuorum,
): Promise<PinnedUsers['subjects']> {
  const rows = await context.em.find(KeyQuorumMemberEntity, { keyQuorumId: id, kind: 'user' });
  const pinned = rows.flatMap(({ member, subject }) => (subject === null ? [] : [[member, subject]]));
  return { ...(await subjectsOf(context, userIds)), ...Object.fromEntries(pinned) };
}

/**
 * The key quorum after a change.
 *
 * @throws ApiError invalid_data when the result would be invalid.
 */
export async function checkKeyQuorumChange(
  context: KeyQuorumContext,
  before: StoredKeyQuorum,
  change: UpdateKeyQuorumRequest,
): Promise<StoredKeyQuorum> {
  const after: StoredKeyQuorum = {
    id: before.id,
    displayName: change.display_name ?? before.displayName,
    threshold: change.authorization_threshold ?? before.threshold,
    publicKeys: change.public_keys === undefined ? before.publicKeys : readPublicKeys(change.public_keys),
    userIds: change.user_ids ?? before.userIds,
    keyQuorumIds: change.key_quorum_ids ?? before.keyQuorumIds,
  };
  await checkMembers(context, after, before.id);
  return after;
}
