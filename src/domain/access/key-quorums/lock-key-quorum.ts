import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext } from './find-key-quorum.ts';

/**
 * Holds a key quorum until the transaction ends: nobody else changes it, deletes it or begins to refer to it, so
 * what is checked next still stands when the change is made. An unknown id is not held.
 */
export async function lockKeyQuorum(context: KeyQuorumContext, id: string): Promise<void> {
  await context.em
    .getKysely<Tables>()
    .selectFrom('key_quorums')
    .select('id')
    .where('id', '=', id)
    .where('app_id', '=', context.app.id)
    .forUpdate()
    .execute();
}

/**
 * Keeps key quorums and those nested in them from being changed or deleted until the transaction ends, so that who
 * has agreed is the same from one look to the next.
 */
export async function holdKeyQuorums(context: KeyQuorumContext, ids: readonly string[]): Promise<void> {
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
