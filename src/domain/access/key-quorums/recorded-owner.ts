import { type QuorumRecord, quorumReference } from '../../../authorization/quorum-records.ts';
import { UnauthorizedUseError } from '../../../authorization/signed-evidence.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { loadQuorumRecords } from './quorum-records.ts';

/** More than an app has key quorums of one key. */
const MAX_CANDIDATES = 100;

/**
 * Asks the vault with these key quorums, and if it refuses, once more with the one that it knows as the owner.
 *
 * NOTE: earlier versions let the vault take another key quorum of the same single key for the owner than the one that the
 * database has. Nothing is believed because of this: the vault counts signatures for the owner that it knows. The next
 * change of the owner makes both the same.
 *
 * @param owner its reference.
 */
export async function withRecordedOwner<T>(
  context: Pick<OperationContext, 'app' | 'em'>,
  { owner, quorums }: { readonly owner: string | null; readonly quorums: readonly QuorumRecord[] },
  ask: (quorums: readonly QuorumRecord[]) => Promise<T>,
): Promise<T> {
  try {
    return await ask(quorums);
  } catch (error) {
    if (!(error instanceof UnauthorizedUseError) || owner === null) throw error;
    const recorded = await recordedOwner(context, owner, quorums);
    if (recorded === undefined) throw error;
    return ask([...quorums, recorded]);
  }
}

/** A key quorum of one key, which is also the only one of a known key quorum; undefined if the owner is known already. */
async function recordedOwner(
  context: Pick<OperationContext, 'app' | 'em'>,
  owner: string,
  quorums: readonly QuorumRecord[],
): Promise<QuorumRecord | undefined> {
  if (quorums.some(({ base }) => quorumReference(base) === owner)) return undefined;
  const keys = quorums.flatMap(({ base }) => (base.publicKeys.length === 1 ? base.publicKeys : []));
  if (keys.length === 0) return undefined;
  const rows = await context.em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members as row')
    .innerJoin('key_quorums as quorum', 'quorum.id', 'row.key_quorum_id')
    .select('quorum.id')
    .where('row.kind', '=', 'public_key')
    .where('row.member', 'in', keys)
    .where('quorum.app_id', '=', context.app.id)
    .orderBy('quorum.id')
    .limit(MAX_CANDIDATES)
    .execute();
  const candidates = await loadQuorumRecords(
    context,
    rows.map(({ id }) => id),
  );
  return candidates.find(({ base }) => quorumReference(base) === owner);
}
