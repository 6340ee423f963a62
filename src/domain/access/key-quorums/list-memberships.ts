import type { Kysely } from 'kysely';
import type { Tables } from '../../tables.ts';
import type { MemberKind } from './find-key-quorum.ts';

/** A member of a key quorum as it is stored. */
export interface Member {
  readonly kind: MemberKind;
  readonly member: string;
}

/** The ids of the key quorums a member counts in: those it belongs to, and those that nest them. */
export function membershipsOf(database: Kysely<Tables>, { kind, member }: Member) {
  const direct = database
    .selectFrom('key_quorum_members as direct')
    .select('direct.key_quorum_id')
    .where('direct.member', '=', member)
    .where('direct.kind', '=', kind);
  return direct.union(
    database
      .selectFrom('key_quorum_members as outer_row')
      .innerJoin('key_quorum_members as inner_row', 'inner_row.key_quorum_id', 'outer_row.member')
      .select('outer_row.key_quorum_id')
      .where('outer_row.kind', '=', 'key_quorum')
      .where('inner_row.member', '=', member)
      .where('inner_row.kind', '=', kind),
  );
}
