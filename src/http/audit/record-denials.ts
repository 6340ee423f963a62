import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError } from '../../errors.ts';
import type { AuditTrail } from '../../ports/audit/audit-trail.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HttpExchange } from '../http-exchange.ts';
import { inUnitOf, type OpenUnit } from '../unit-of-work.ts';
import { createDenialBudget } from './denial-budget.ts';
import { isDenial, requestRecord } from './request-record.ts';

/** Records a refusal, if it is a denial that is not recorded yet, before its response. */
export type RecordDenial = (exchange: HttpExchange, error: unknown) => Promise<void>;

/** Requests whose denial was recorded in the transaction of what they changed nevertheless. */
const alreadyRecorded = new WeakSet<HttpExchange>();

interface DenialOptions {
  readonly audit: AuditTrail;
  readonly openUnit: OpenUnit;
  /** The clock of the machine. */
  readonly machine: Clock;
}

export function recordDenials({ audit, openUnit, machine }: DenialOptions): RecordDenial {
  const inUnit = inUnitOf(openUnit);
  const budget = createDenialBudget(machine);
  return async (exchange, error) => {
    if (!(error instanceof ApiError) || !isDenial(error, exchange) || alreadyRecorded.has(exchange)) return;
    const record = denialRecord(exchange, audit, error);
    const isUnknown = record.by.kind === 'anonymous' || record.by.kind === 'web_page';
    if (isUnknown && !budget.take()) return;
    await budget.write((omitted) =>
      inUnit((em) => audit.record(em, { ...record, omitted }, { isLast: true })),
    );
  };
}

/** Records a denial in the transaction of what the request changed although it is refused. */
export async function recordDenialWithChanges(
  em: SqlEntityManager,
  exchange: HttpExchange,
  { audit, error }: { readonly audit: AuditTrail; readonly error: ApiError },
): Promise<void> {
  if (!isDenial(error, exchange)) return;
  await audit.record(em, denialRecord(exchange, audit, error));
  alreadyRecorded.add(exchange);
}

function denialRecord(exchange: HttpExchange, audit: AuditTrail, { status, code }: ApiError) {
  return requestRecord(exchange, audit, { status, code, decision: 'deny' });
}
