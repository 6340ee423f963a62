import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext, MemberKind, StoredKeyQuorum } from './find-key-quorum.ts';

/** Replaces the members of a key quorum. */
export async function storeMembers(context: KeyQuorumContext, quorum: StoredKeyQuorum): Promise<void> {
  const database = context.em.getKysely<Tables>();
  const rows = [
    ...rowsOf('public_key', quorum.publicKeys),
    ...rowsOf('user', quorum.userIds),
    ...rowsOf('key_quorum', quorum.keyQuorumIds),
  ].map((row, position) => ({ key_quorum_id: quorum.id, position, ...row }));
  await database.deleteFrom('key_quorum_members').where('key_quorum_id', '=', quorum.id).execute();
  await database.insertInto('key_quorum_members').values(rows).execute();
}

function rowsOf(kind: MemberKind, members: readonly string[]): { kind: MemberKind; member: string }[] {
  return members.map((member) => ({ kind, member }));
}
