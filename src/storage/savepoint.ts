import type { SqlEntityManager } from '@mikro-orm/sql';

/**
 * Runs part of a unit of work that can be undone by itself.
 *
 * NOTE: the work gets an entity manager without the entities read so far. It would share them with the one outside, and
 * a change that is undone in the database would be written by the next flush all the same.
 */
export async function inSavepoint<T>(
  em: SqlEntityManager,
  work: (em: SqlEntityManager) => Promise<T>,
): Promise<T> {
  await em.flush();
  return em.transactional((inner) => work(inner as SqlEntityManager), { clear: true });
}
