import type { SqlEntityManager } from '@mikro-orm/sql';
import { findApp } from '../apps/find-app.ts';
import { OperatorEntity, type StoredOperator } from './operator.entity.ts';
import { type OperatorCaller, requireOwnApp } from './operator-caller.ts';
import { OperatorRecordEntity, type StoredOperatorRecord } from './operator-record.entity.ts';

interface ReadingContext {
  readonly em: SqlEntityManager;
  readonly by: OperatorCaller;
}

/**
 * The operators of an app, oldest first, without removed ones.
 *
 * @throws ApiError not_found
 */
export async function listOperators({ em, by }: ReadingContext, appId: string): Promise<StoredOperator[]> {
  requireOwnApp(by, appId, 'App');
  await findApp(em, appId);
  return em.find(
    OperatorEntity,
    { appId, removedAtMs: null },
    { orderBy: { createdAtMs: 'asc', id: 'asc' } },
  );
}

/**
 * A page of what was done to an app, newest first.
 *
 * @param page `before`: the sequence of the last record of the previous page.
 * @throws ApiError not_found
 */
export async function listOperatorRecords(
  { em, by }: ReadingContext,
  appId: string,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<StoredOperatorRecord[]> {
  requireOwnApp(by, appId, 'App');
  await findApp(em, appId);
  const older = page.before === undefined ? {} : { sequence: { $lt: page.before } };
  return em.find(
    OperatorRecordEntity,
    { appId, ...older },
    { orderBy: { sequence: 'desc' }, limit: page.limit },
  );
}
