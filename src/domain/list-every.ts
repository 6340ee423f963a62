import type { AutoPath, EntityName, FilterQuery, Loaded } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { invalidQuery } from '../errors.ts';
import { findPage } from '../storage/find-page.ts';

/** The position in a list: the `next_cursor` of the previous page, and the maximum number of rows, by default 100. */
interface EveryQuery {
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

interface EveryFilter<Entity, Excluded extends string> {
  readonly where?: object;
  /** Large columns that the list omits. */
  readonly exclude?: readonly AutoPath<Entity, Excluded>[];
}

/**
 * Lists one page of the rows of all apps that match a filter, newest first. Only for a sandbox, because no index has
 * this order.
 *
 * @throws ApiError invalid_data for an unknown cursor.
 */
export async function listEvery<
  Entity extends { id: string; createdAtMs: number },
  Excluded extends string = never,
>(
  em: SqlEntityManager,
  entity: EntityName<Entity>,
  { cursor, limit = 100 }: EveryQuery,
  { where = {}, exclude = [] }: EveryFilter<Entity, Excluded> = {},
): Promise<{ page: Loaded<Entity, never, '*', Excluded>[]; nextCursor: string | null }> {
  const after =
    cursor === undefined ? undefined : await em.findOne(entity, { id: cursor } as FilterQuery<Entity>);
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  return findPage(em, entity, where as FilterQuery<Entity>, { after, limit, exclude });
}
