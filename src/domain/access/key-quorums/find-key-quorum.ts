import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { KeyQuorumEntity } from './key-quorum.entity.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';

export type KeyQuorumContext = Pick<OperationContext, 'app' | 'em'>;

export type MemberKind = 'public_key' | 'user' | 'key_quorum';

/** A key quorum with its members, as stored. */
export interface StoredKeyQuorum {
  readonly id: string;
  readonly displayName: string | null;
  /** Null = all members. */
  readonly threshold: number | null;
  /** Each in the order given. */
  readonly publicKeys: readonly string[];
  readonly userIds: readonly string[];
  readonly keyQuorumIds: readonly string[];
}

/**
 * A key quorum of the app.
 *
 * @throws ApiError not_found
 */
export async function findKeyQuorum(context: KeyQuorumContext, id: string): Promise<StoredKeyQuorum> {
  const [quorum] = await listKeyQuorums(context, [id]);
  if (quorum === undefined) throw notFound('Key quorum');
  return quorum;
}

/** The app's key quorums among these ids. */
export async function listKeyQuorums(
  { app, em }: KeyQuorumContext,
  ids: readonly string[],
): Promise<StoredKeyQuorum[]> {
  if (ids.length === 0) return [];
  const quorums = await em.find(KeyQuorumEntity, { id: { $in: [...ids] }, appId: app.id });
  if (quorums.length === 0) return [];
  const members = await em.find(
    KeyQuorumMemberEntity,
    { keyQuorumId: { $in: quorums.map(({ id }) => id) } },
    { orderBy: { keyQuorumId: 'asc', position: 'asc' } },
  );
  const byQuorum = Map.groupBy(members, ({ keyQuorumId }) => keyQuorumId);
  return quorums.map(({ id, displayName, authorizationThreshold }) => {
    const membersOf = (kind: MemberKind) =>
      (byQuorum.get(id) ?? []).filter((row) => row.kind === kind).map(({ member }) => member);
    return {
      id,
      displayName,
      threshold: authorizationThreshold,
      publicKeys: membersOf('public_key'),
      userIds: membersOf('user'),
      keyQuorumIds: membersOf('key_quorum'),
    };
  });
}
