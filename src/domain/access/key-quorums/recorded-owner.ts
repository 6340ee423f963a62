import { type QuorumRecord, quorumReference } from '../../../authorization/quorum-records.ts';
import { UnauthorizedUseError } from '../../../authorization/signed-evidence.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { KeyQuorumEntity } from './key-quorum.entity.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';
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
    const recorded = await findRecordedOwner(context, owner, quorums);
    if (recorded === undefined) throw error;
    return ask([...quorums, recorded]);
  }
}

/** A key quorum of one key, which is also the only one of a known key quorum; undefined if the owner is known already. */
export async function findRecordedOwner(
  context: Pick<OperationContext, 'app' | 'em'>,
  owner: string,
  quorums: readonly QuorumRecord[],
): Promise<QuorumRecord | undefined> {
  if (quorums.some(({ base }) => quorumReference(base) === owner)) return undefined;
  const keys = quorums.flatMap(({ base }) => (base.publicKeys.length === 1 ? base.publicKeys : []));
  if (keys.length === 0) return undefined;
  const { app, em } = context;
  const members = await em.find(KeyQuorumMemberEntity, { kind: 'public_key', member: { $in: keys } });
  const ids = members.map(({ keyQuorumId }) => keyQuorumId);
  const limits = { orderBy: { id: 'asc' }, limit: MAX_CANDIDATES } as const;
  const own = await em.find(KeyQuorumEntity, { appId: app.id, id: { $in: ids } }, limits);
  const candidates = await loadQuorumRecords(
    context,
    own.map(({ id }) => id),
  );
  return candidates.find(({ base }) => quorumReference(base) === owner);
}
