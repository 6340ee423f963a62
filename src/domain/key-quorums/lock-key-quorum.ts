import type { Tables } from '../../storage/entities.ts';
import { hasRowLocks, type KeyQuorumContext } from './find-key-quorum.ts';

/**
 * Holds a key quorum until the transaction ends: nobody else changes it, deletes it or begins to refer to it, so
 * what is checked next still stands when the change is made. An unknown id is not held.
 */
export async function lockKeyQuorum(context: KeyQuorumContext, id: string): Promise<void> {
  // SQLite has one writer at a time.
  if (!hasRowLocks(context)) return;
  await context.em
    .getKysely<Tables>()
    .selectFrom('key_quorums')
    .select('id')
    .where('id', '=', id)
    .where('app_id', '=', context.app.id)
    .forUpdate()
    .execute();
}
