import { ApiError } from '../../../errors.ts';
import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext } from './find-key-quorum.ts';

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
  // Locked so that the quorum cannot be deleted before the reference to it is stored.
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

/** HOT: runs for every wallet created with an owner or signers; the entity manager has no key-share lock. */
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
