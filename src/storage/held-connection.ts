import type { SqlEntityManager } from '@mikro-orm/sql';
import { CompiledQuery } from 'kysely';

/** Answered by our drivers; never sent to a database. */
export const heldQuestion: CompiledQuery<{ isHeld: boolean }> = CompiledQuery.raw(
  '-- is a connection held?',
) as CompiledQuery<{ isHeld: boolean }>;

/**
 * Whether the unit of work of `em` keeps others from the database now: a connection of PostgreSQL with an open
 * transaction, or the one of SQLite. A unit of work that has only read on PostgreSQL does not.
 */
export async function holdsConnection(em: SqlEntityManager): Promise<boolean> {
  if (!em.isInTransaction()) return false;
  const { rows } = await em.getKysely().executeQuery(heldQuestion);
  return rows[0]!.isHeld;
}
