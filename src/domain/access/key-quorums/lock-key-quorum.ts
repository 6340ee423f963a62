import { lockForUpdate } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext } from './find-key-quorum.ts';
import { KeyQuorumEntity } from './key-quorum.entity.ts';

/**
 * Locks a key quorum until the transaction ends, so that it is not changed, deleted or newly referred to between a
 * check and the change that depends on it. Ignores unknown ids.
 */
export async function lockKeyQuorum({ app, em }: KeyQuorumContext, id: string): Promise<void> {
  await em.findOne(KeyQuorumEntity, { id, appId: app.id }, lockForUpdate);
}

/**
 * Locks key quorums and the quorums nested in them against change and deletion until the transaction ends, so that
 * repeated authorization checks agree.
 *
 * HOT: runs for every intent that is executed; the entity manager has no key-share lock.
 */
export async function lockKeyQuorumsForShare(
  context: KeyQuorumContext,
  ids: readonly string[],
): Promise<void> {
  const database = context.em.getKysely<Tables>();
  const nested = database
    .selectFrom('key_quorum_members')
    .select('member')
    .where('key_quorum_id', 'in', [...ids])
    .where('kind', '=', 'key_quorum');
  await database
    .selectFrom('key_quorums')
    .select('id')
    .where('app_id', '=', context.app.id)
    .where(({ eb, or }) => or([eb('id', 'in', [...ids]), eb('id', 'in', nested)]))
    .orderBy('id')
    .forKeyShare()
    .execute();
}
