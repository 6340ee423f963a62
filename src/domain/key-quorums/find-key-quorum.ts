import { ApiError, notFound } from '../../errors.ts';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';

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
  const rows = await context.em
    .getKysely<Tables>()
    .selectFrom('key_quorums as quorum')
    .leftJoin('key_quorum_members as row', 'row.key_quorum_id', 'quorum.id')
    .select(['quorum.display_name', 'quorum.authorization_threshold', 'row.kind', 'row.member'])
    .where('quorum.id', '=', id)
    .where('quorum.app_id', '=', context.app.id)
    .orderBy('row.position')
    .execute();
  const [first] = rows;
  if (first === undefined) throw notFound('Key quorum');
  const membersOf = (kind: MemberKind) =>
    rows.flatMap((row) => (row.kind === kind ? (row.member ?? []) : []));
  return {
    id,
    displayName: first.display_name,
    threshold: first.authorization_threshold,
    publicKeys: membersOf('public_key'),
    userIds: membersOf('user'),
    keyQuorumIds: membersOf('key_quorum'),
  };
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
  // A quorum that is being referred to must not be deleted before the reference is there. SQLite has one writer.
  const rows = await (hasRowLocks(context) ? query.orderBy('id').forKeyShare() : query).execute();
  const missing = distinct.filter((id) => !rows.some((row) => row.id === id));
  if (missing.length > 0) throw missingKeyQuorums(missing, pointer);
}

/** Whether rows can be locked one by one: on PostgreSQL. */
export function hasRowLocks(context: Pick<OperationContext, 'em'>): boolean {
  return context.em.getPlatform().supportsSchemas();
}

function missingKeyQuorums(ids: readonly string[], pointer: string): ApiError {
  const message = 'Unable to find the specified key quorums for this app.';
  return new ApiError('invalid_data', message, {
    data: { issues: ids.map((id) => ({ in: 'body', pointer, message: `no key quorum \`${id}\`` })) },
  });
}
