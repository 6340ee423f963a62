import type { PinnedUsers } from '../../../authorization/user-vouchers.ts';
import { forgetQuorumRows } from '../owners/quorum-rows.ts';
import type { KeyQuorumContext, MemberKind, StoredKeyQuorum } from './find-key-quorum.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';

/**
 * Replaces the members of a key quorum.
 *
 * @param subjects of users who are pinned.
 *
 * NOTE: rows, not entities: a new member takes the primary key of the one it replaces, and the entity manager would
 * treat the two as the same entity.
 */
export async function storeMembers(
  { em }: KeyQuorumContext,
  quorum: StoredKeyQuorum,
  subjects: PinnedUsers['subjects'] = {},
): Promise<void> {
  const rows = [
    ...rowsOf('public_key', quorum.publicKeys),
    ...rowsOf('user', quorum.userIds),
    ...rowsOf('key_quorum', quorum.keyQuorumIds),
  ].map((row, position) => ({ keyQuorumId: quorum.id, position, ...row, subject: subjectOf(row) }));
  function subjectOf({ kind, member }: { kind: MemberKind; member: string }): string | null {
    return (kind === 'user' ? subjects[member] : undefined) ?? null;
  }
  await em.nativeDelete(KeyQuorumMemberEntity, { keyQuorumId: quorum.id });
  await em.insertMany(KeyQuorumMemberEntity, rows);
  forgetQuorumRows({ em });
}

function rowsOf(kind: MemberKind, members: readonly string[]): { kind: MemberKind; member: string }[] {
  return members.map((member) => ({ kind, member }));
}
