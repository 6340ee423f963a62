import type { SqlEntityManager } from '@mikro-orm/sql';

/**
 * Runs part of a unit of work so that it can be rolled back on its own.
 *
 * NOTE: the work gets an entity manager without the entities read so far. If they were shared, the next flush outside
 * would write changes that were rolled back.
 */
export async function inSavepoint<T>(
  em: SqlEntityManager,
  work: (em: SqlEntityManager) => Promise<T>,
): Promise<T> {
  await em.flush();
  return em.transactional((inner) => work(inner as SqlEntityManager), { clear: true });
}
