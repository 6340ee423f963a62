import type { CreateKeyQuorumRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { checkMembers, readPublicKeys } from './check-members.ts';
import type { StoredKeyQuorum } from './find-key-quorum.ts';
import { KeyQuorumEntity } from './key-quorum.entity.ts';
import { storeMembers } from './store-members.ts';
import { pinUsers } from './voucher-keys.ts';

/**
 * Creates a key quorum of public keys, users and other key quorums.
 *
 * @throws ApiError invalid_data
 */
export async function createKeyQuorum(
  context: OperationContext,
  input: CreateKeyQuorumRequest,
): Promise<StoredKeyQuorum> {
  const members = {
    threshold: input.authorization_threshold ?? null,
    publicKeys: readPublicKeys(input.public_keys ?? []),
    userIds: input.user_ids ?? [],
    keyQuorumIds: input.key_quorum_ids ?? [],
  };
  await checkMembers(context, members);
  const users = await pinUsers(context, members.userIds);
  const quorum = { id: context.ids.cuid2(), displayName: input.display_name ?? null, ...members };
  context.em.create(KeyQuorumEntity, {
    id: quorum.id,
    appId: context.app.id,
    displayName: quorum.displayName,
    authorizationThreshold: quorum.threshold,
    implicitFor: null,
    voucher: users?.voucher ?? null,
    createdAtMs: context.nowMs,
  });
  await context.em.flush();
  await storeMembers(context, quorum, users?.subjects);
  return quorum;
}
