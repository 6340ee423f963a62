import type { SqlEntityManager } from '@mikro-orm/sql';

/** Whether rows can be locked one by one: on PostgreSQL. SQLite has one writer at a time. */
export function hasRowLocks({ em }: { readonly em: SqlEntityManager }): boolean {
  return em.getPlatform().supportsSchemas();
}
