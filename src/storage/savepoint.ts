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
  let within: SqlEntityManager | undefined;
  const result = await em.transactional(
    (inner) => {
      within = inner as SqlEntityManager;
      return work(within);
    },
    { clear: true },
  );
  released.set(em, [...savepointsOf(em), within!]);
  return result;
}

const released = new WeakMap<SqlEntityManager, readonly SqlEntityManager[]>();

/** The entity managers of the savepoints in the unit of work of `em` that were not rolled back. */
export function savepointsOf(em: SqlEntityManager): readonly SqlEntityManager[] {
  return released.get(em) ?? [];
}
