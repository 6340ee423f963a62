import type { SqlEntityManager } from '@mikro-orm/sql';
import { AuditRecordEntity } from '../../base/audit/audit-record.entity.ts';
import { sequenceAll } from '../../base/audit/sequence-records.ts';
import { findApp } from '../apps/find-app.ts';
import { OperatorEntity, type StoredOperator } from './operator.entity.ts';
import { type OperatorCaller, requireOwnApp } from './operator-caller.ts';
import type { OperatorRecord, RecordedAction } from './operator-view.ts';

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
 * A page of what was done to an app, newest first, from the audit log.
 *
 * @param page `before`: the sequence of the last record of the previous page.
 * @throws ApiError not_found
 */
export async function listOperatorRecords(
  { em, by, nowMs }: ReadingContext & { readonly nowMs: number },
  appId: string,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<OperatorRecord[]> {
  requireOwnApp(by, appId, 'App');
  await findApp(em, appId);
  // Those written just now have no place in the log yet.
  await sequenceAll(em, nowMs);
  const older = page.before === undefined ? {} : { leafIndex: { $lt: page.before - 1 } };
  const records = await em.find(
    AuditRecordEntity,
    { appId, origin: { $ne: null }, ...older },
    { orderBy: { leafIndex: 'desc' }, limit: page.limit },
  );
  const read = records.map(({ leafIndex, entry }) => ({
    sequence: leafIndex + 1,
    entry: JSON.parse(entry) as RecordedAction,
  }));
  const ids = [...new Set(read.flatMap(({ entry }) => entry.by.operator_id ?? []))];
  const operators = await em.find(OperatorEntity, { id: { $in: ids } });
  const names = new Map(operators.map(({ id, name }) => [id, name]));
  return read.map(({ sequence, entry }) => ({
    sequence,
    entry,
    // The log has no names, because they are personal.
    operatorName: names.get(entry.by.operator_id ?? '') ?? null,
  }));
}
