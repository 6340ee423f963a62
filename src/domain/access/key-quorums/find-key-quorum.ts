import type { Kysely } from 'kysely';
import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { KeyQuorum } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import type { Tables } from '../../tables.ts';
import { KeyQuorumEntity, KeyQuorumMemberEntity, type KeyQuorumRow } from './key-quorum.entity.ts';

export type KeyQuorumContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

export type MemberKind = 'public_key' | 'user' | 'key_quorum';

export interface StoredKeyQuorum {
  readonly id: string;
  readonly displayName: string | null;
  /** The number of members that must sign; null means all. */
  readonly threshold: number | null;
  /** This list and the two that follow keep the order of the request. */
  readonly publicKeys: readonly string[];
  readonly userIds: readonly string[];
  readonly keyQuorumIds: readonly string[];
}

/**
 * Finds a key quorum of the app.
 *
 * @throws ApiError not_found
 */
export async function findKeyQuorum(context: KeyQuorumContext, id: string): Promise<StoredKeyQuorum> {
  const [quorum] = await listKeyQuorumsOfIds(context, [id]);
  if (quorum === undefined) throw notFound('Key quorum');
  return quorum;
}

/** Lists the app's key quorums with these ids. */
export async function listKeyQuorumsOfIds(
  context: KeyQuorumContext,
  ids: readonly string[],
): Promise<StoredKeyQuorum[]> {
  if (ids.length === 0) return [];
  const { app, em } = context;
  return withMembers(context, await em.find(KeyQuorumEntity, { id: { $in: [...ids] }, appId: app.id }));
}

/**
 * Lists one page of the app's key quorums, newest first.
 *
 * CHOICE: the list includes key quorums that were created for the `owner` of a resource.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not a key quorum of the app.
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

/** Reads the members of key quorums, and returns the key quorums in the same order. */
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

/** Converts a key quorum to wire form. */
export function keyQuorumView(quorum: StoredKeyQuorum): KeyQuorum {
  return {
    id: quorum.id,
    display_name: quorum.displayName,
    authorization_threshold: quorum.threshold,
    // CHOICE: keys have no display name, because no operation sets one.
    authorization_keys: quorum.publicKeys.map((key) => ({ public_key: key, display_name: null })),
    user_ids: quorum.userIds.length === 0 ? null : [...quorum.userIds],
    ...(quorum.keyQuorumIds.length === 0 ? {} : { key_quorum_ids: [...quorum.keyQuorumIds] }),
  };
}

export interface Member {
  readonly kind: MemberKind;
  readonly member: string;
}

/**
 * Selects the ids of the key quorums in which a member counts: those that contain the member, and those that contain
 * one of these key quorums.
 */
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

/**
 * Checks that key quorums named in a body exist in the app, and locks them against deletion.
 *
 * @param pointer JSON pointer to the field that names them.
 * @throws ApiError invalid_data
 */
export async function requireKeyQuorums(
  context: KeyQuorumContext,
  ids: readonly string[],
  pointer: string,
): Promise<void> {
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return;
  // Lock the key quorums, so that none is deleted before the reference to it is stored.
  const rows = await selectForKeyShare(context, distinct).execute();
  const missing = distinct.filter((id) => !rows.some((row) => row.id === id));
  if (missing.length > 0) throw missingKeyQuorums(missing, pointer);
}

function missingKeyQuorums(ids: readonly string[], pointer: string): ApiError {
  const message = 'Unable to find the specified key quorums for this app.';
  return new ApiError('invalid_data', message, {
    data: { issues: ids.map((id) => ({ in: 'body', pointer, message: `no key quorum \`${id}\`` })) },
  });
}

/**
 * Returns a query that selects key quorums and locks them against deletion.
 *
 * KYSELY: the entity manager has no key-share lock.
 */
function selectForKeyShare({ app, em }: KeyQuorumContext, ids: readonly string[]) {
  return em
    .getKysely<Tables>()
    .selectFrom('key_quorums')
    .select('id')
    .where('id', 'in', ids)
    .where('app_id', '=', app.id)
    .orderBy('id')
    .forKeyShare();
}
