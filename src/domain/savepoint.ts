import type { SqlEntityManager } from '@mikro-orm/sql';
import { addNotes, createNotes, type UnitContext, type UnitWork } from '../ports/operation-context.ts';

/**
 * Runs part of a unit of work so that it can be rolled back on its own, together with its notes.
 *
 * NOTE: the work gets a new entity manager without the entities that were read so far. If they were shared, the next
 * flush outside would write changes that were rolled back.
 */
export async function inSavepoint<T>({ em, notes }: UnitContext, work: UnitWork<T>): Promise<T> {
  await em.flush();
  const inner = createNotes();
  try {
    const result = await em.transactional((within: SqlEntityManager) => work(within, inner), { clear: true });
    addNotes(notes, inner);
    return result;
  } finally {
    inner.isOver = true;
  }
}
