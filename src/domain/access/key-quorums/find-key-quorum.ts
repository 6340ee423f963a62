import { invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { KeyQuorumEntity, type KeyQuorumRow } from './key-quorum.entity.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';

export type KeyQuorumContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

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
  const [quorum] = await listKeyQuorumsOfIds(context, [id]);
  if (quorum === undefined) throw notFound('Key quorum');
  return quorum;
}

/** The app's key quorums among these ids. */
export async function listKeyQuorumsOfIds(
  context: KeyQuorumContext,
  ids: readonly string[],
): Promise<StoredKeyQuorum[]> {
  if (ids.length === 0) return [];
  const { app, em } = context;
  return withMembers(context, await em.find(KeyQuorumEntity, { id: { $in: [...ids] }, appId: app.id }));
}

/**
 * One page of the app's key quorums, newest first.
 *
 * CHOICE: the list includes key quorums that were created for the `owner` of a resource.
 *
 * @param page `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no key quorum.
 */
export async function listKeyQuorums(
  context: KeyQuorumContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ quorums: StoredKeyQuorum[]; nextCursor: string | null }> {
  const { app, em } = context;
  const after =
    cursor === undefined ? undefined : await em.findOne(KeyQuorumEntity, { id: cursor, appId: app.id });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(em, KeyQuorumEntity, { appId: app.id }, { after, limit });
  return { quorums: await withMembers(context, page), nextCursor };
}

/** The key quorums with their members, in the same order. */
async function withMembers(
  { em }: KeyQuorumContext,
  quorums: readonly KeyQuorumRow[],
): Promise<StoredKeyQuorum[]> {
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
