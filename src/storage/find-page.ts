import {
  type AutoPath,
  type EntityName,
  type FilterQuery,
  type Loaded,
  type QueryOrderMap,
  raw,
} from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';

/** The properties by which a list is ordered. */
interface Dated {
  id: string;
  createdAtMs: number;
}

interface PageRequest<Entity, Excluded extends string> {
  /** The last row of the previous page. */
  readonly after: Dated | undefined;
  readonly limit: number;
  /** Large columns that the list omits. */
  readonly exclude?: readonly AutoPath<Entity, Excluded>[];
}

/**
 * Returns one page of the rows that match `where`, newest first, and the cursor of the next page: the id of the last
 * row, or null on the last page.
 *
 * NOTE: the condition compares row values, for which the database uses an index on `(…, created_at_ms, id)`. MikroORM's
 * own cursors compare the columns one by one.
 */
export async function findPage<Entity extends Dated, Excluded extends string = never>(
  em: SqlEntityManager,
  entity: EntityName<Entity>,
  where: FilterQuery<Entity>,
  { after, limit, exclude = [] }: PageRequest<Entity, Excluded>,
): Promise<{ page: Loaded<Entity, never, '*', Excluded>[]; nextCursor: string | null }> {
  const older = after && { [raw('(created_at_ms, id) < (?, ?)', [after.createdAtMs, after.id])]: [] };
  const rows = await em.find(entity, { ...(where as object), ...older } as FilterQuery<Entity>, {
    orderBy: { createdAtMs: 'desc', id: 'desc' } as QueryOrderMap<Entity>,
    exclude,
    limit: limit + 1,
  });
  return pageOf(rows, limit);
}

// These lists read rows with Kysely and use the two functions below:
// - wallets and users, because a bench case shows the cost of entities;
// - transactions and wallet actions, because their views take rows;
// - webhook deliveries, because they are ordered differently.
//
// Intents can be ordered in three ways and have their own cursor.

/**
 * Returns the page without the extra row. Callers read one row more than `limit`: if it exists, another page follows.
 */
export function pageOf<Row extends object>(
  rows: readonly Row[],
  limit: number,
): { page: Row[]; nextCursor: string | null } {
  const page = rows.slice(0, limit);
  const last = page.at(-1) as { readonly id: string } | undefined;
  return { page, nextCursor: rows.length > limit ? (last?.id ?? null) : null };
}

/**
 * Returns the SQL condition for the rows after a cursor, newest first. It compares the row value `(created_at_ms, id)`,
 * so the database uses an index on both columns.
 */
export function olderThan(createdAtMs: number, id: string) {
  return sql<boolean>`(created_at_ms, id) < (${createdAtMs}, ${id})`;
}
