import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

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
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('key_quorums as quorum')
    .leftJoin('key_quorum_members as row', 'row.key_quorum_id', 'quorum.id')
    .select(['quorum.id', 'quorum.display_name', 'quorum.authorization_threshold', 'row.kind', 'row.member'])
    .where('quorum.id', 'in', ids)
    .where('quorum.app_id', '=', app.id)
    .orderBy('row.position')
    .execute();
  return [...Map.groupBy(rows, (row) => row.id)].map(([id, ofQuorum]) => {
    const membersOf = (kind: MemberKind) =>
      ofQuorum.flatMap((row) => (row.kind === kind ? (row.member ?? []) : []));
    return {
      id,
      displayName: ofQuorum[0]!.display_name,
      threshold: ofQuorum[0]!.authorization_threshold,
      publicKeys: membersOf('public_key'),
      userIds: membersOf('user'),
      keyQuorumIds: membersOf('key_quorum'),
    };
  });
}

/**
 * Checks that key quorums named in a body exist in the app.
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
  const query = context.em
    .getKysely<Tables>()
    .selectFrom('key_quorums')
    .select('id')
    .where('id', 'in', distinct)
    .where('app_id', '=', context.app.id);
  // Locked so that the quorum cannot be deleted before the reference to it is stored.
  const rows = await query.orderBy('id').forKeyShare().execute();
  const missing = distinct.filter((id) => !rows.some((row) => row.id === id));
  if (missing.length > 0) throw missingKeyQuorums(missing, pointer);
}

function missingKeyQuorums(ids: readonly string[], pointer: string): ApiError {
  const message = 'Unable to find the specified key quorums for this app.';
  return new ApiError('invalid_data', message, {
    data: { issues: ids.map((id) => ({ in: 'body', pointer, message: `no key quorum \`${id}\`` })) },
  });
}
