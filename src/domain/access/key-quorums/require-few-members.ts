import { invalidField } from '../../../errors.ts';
import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext } from './find-key-quorum.ts';

/**
 * CHOICE: no limit is published. The keys of every member are read for each request that has to be authorized. One key
 * quorum can have 95 members and 5 key quorums of 100 each. Key quorums that grow later are not counted again.
 */
const MAX_MEMBERS = 600;

/**
 * Checks that the given key quorums and those nested in them have few members in all; a key quorum that is nested twice
 * counts twice.
 *
 * @param pointer JSON pointer to the field that names them.
 * @throws ApiError invalid_data
 */
export async function requireFewMembers(
  context: KeyQuorumContext,
  ids: readonly string[],
  pointer: string,
): Promise<void> {
  if (ids.length === 0) return;
  const count = await countMembers(context, [...new Set(ids)]);
  if (count > MAX_MEMBERS) {
    throw invalidField(pointer, `expected at most ${MAX_MEMBERS} members in all key quorums, got ${count}`);
  }
}

/** HOT: runs for every wallet created with signers; one count instead of reading the members. */
async function countMembers({ em }: KeyQuorumContext, ids: readonly string[]): Promise<number> {
  const { count } = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members as member')
    .leftJoin('key_quorum_members as nested', (join) =>
      join.onRef('nested.key_quorum_id', '=', 'member.member').on('member.kind', '=', 'key_quorum'),
    )
    .where('member.key_quorum_id', 'in', ids)
    .select((expression) => expression.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}
