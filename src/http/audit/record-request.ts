import type { SqlEntityManager } from '@mikro-orm/sql';
import type { ApiError } from '../../errors.ts';
import type { AuditTrail } from '../../ports/audit/audit-trail.ts';
import type { HttpExchange } from '../http-exchange.ts';
import type { OpenUnit, UnitOfWork } from '../unit-of-work.ts';
import { recordingChanges } from './audited-unit.ts';
import { recordDenialWithChanges } from './record-denials.ts';
import { beginningOf, isRecorded, requestRecord } from './request-record.ts';

/** The log; undefined where requests are not recorded. */
interface Log {
  readonly audit: AuditTrail | undefined;
}

/**
 * The last statement of a request; undefined for one that is not recorded.
 *
 * INVARIANT: every request that changes something or uses a key is recorded by it, in the transaction of its change.
 */
export function lastRecord(
  exchange: HttpExchange,
  { audit, status, body }: Log & { readonly status: number; readonly body: unknown },
): Parameters<UnitOfWork['commit']>[0] {
  if (audit === undefined || !isRecorded(exchange)) return undefined;
  const record = requestRecord(exchange, audit, { status, body, decision: 'allow' });
  return (em) => audit.record(em, record, { isLast: true });
}

/** Commits what a refused request has changed nevertheless. */
export async function keepChanges(
  unit: UnitOfWork,
  exchange: HttpExchange,
  { audit, error }: Log & { readonly error: ApiError },
): Promise<void> {
  if (audit !== undefined) await recordDenialWithChanges(unit.em, exchange, { audit, error });
  await unit.commit();
}

/** Units of work for after the commit: what they change is recorded as part of the same request. */
export function afterCommitUnits(
  exchange: HttpExchange,
  openUnit: OpenUnit,
  audit: AuditTrail | undefined,
): OpenUnit {
  if (audit === undefined) return openUnit;
  return recordingChanges(openUnit, audit, () => ({ ...beginningOf(exchange), phase: 'after_commit' }));
}

/** Records that work after the commit of a request refused it. */
export async function recordLateRefusal(
  em: SqlEntityManager,
  exchange: HttpExchange,
  { audit, error: { status, code } }: Log & { readonly error: ApiError },
): Promise<void> {
  if (audit === undefined) return;
  const record = requestRecord(exchange, audit, { status, code, decision: 'allow' });
  await audit.record(em, { ...record, phase: 'after_commit' });
}
