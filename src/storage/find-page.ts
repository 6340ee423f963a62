import { type EntityName, type FilterQuery, type Loaded, type QueryOrderMap, raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';

/** The properties that order a list. */
interface Dated {
  id: string;
  createdAtMs: number;
}

export interface PageRequest<Entity> {
  /** The last row of the previous page. */
  readonly after: Entity | undefined;
  readonly limit: number;
}

/**
 * One page of the rows that match `where`, newest first, and the cursor of the next page: the id of the last row,
 * null on the last page.
 *
 * NOTE: the condition is a row value, which uses an index on `(…, created_at_ms, id)`; MikroORM's own cursors compare
 * the columns one by one.
 */
export async function findPage<Entity extends Dated>(
  em: SqlEntityManager,
  entity: EntityName<Entity>,
  where: FilterQuery<Entity>,
  { after, limit }: PageRequest<Entity>,
): Promise<{ page: Loaded<Entity>[]; nextCursor: string | null }> {
  const older = after && { [raw('(created_at_ms, id) < (?, ?)', [after.createdAtMs, after.id])]: [] };
  const rows = await em.find(entity, { ...(where as object), ...older } as FilterQuery<Entity>, {
    orderBy: { createdAtMs: 'desc', id: 'desc' } as QueryOrderMap<Entity>,
    // One extra row shows whether another page follows.
    limit: limit + 1,
  });
  const page = rows.slice(0, limit);
  return { page, nextCursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
}
