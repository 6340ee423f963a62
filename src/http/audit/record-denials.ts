import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError } from '../../errors.ts';
import type { AuditTrail } from '../../ports/audit/audit-trail.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HttpExchange } from '../http-exchange.ts';
import { inUnitOf, type OpenUnit } from '../unit-of-work.ts';
import { isDenial, requestRecord } from './request-record.ts';

/** Records a refusal, if it is a denial that is not recorded yet, before its response. */
export type RecordDenial = (exchange: HttpExchange, error: unknown) => Promise<void>;

/** Requests whose denial was recorded in the transaction of what they changed nevertheless. */
const alreadyRecorded = new WeakSet<HttpExchange>();

/**
 * CHOICE: denials of callers that no credential identifies: 50 a second in each process. Others are counted, and the
 * next record has their number. Without a bound, anyone could fill the log. Callers that are known are bounded by
 * their rate limit.
 */
const anonymousPerSecond = 50;

interface DenialOptions {
  readonly audit: AuditTrail;
  readonly openUnit: OpenUnit;
  /** The clock of the machine. */
  readonly machine: Clock;
}

export function recordDenials({ audit, openUnit, machine }: DenialOptions): RecordDenial {
  const inUnit = inUnitOf(openUnit);
  let [second, used, omitted] = [0, 0, 0];
  const isOmitted = (kind: string): boolean => {
    if (kind !== 'anonymous' && kind !== 'web_page') return false;
    const now = Math.floor(machine.now() / 1000);
    if (now !== second) [second, used] = [now, 0];
    used += 1;
    if (used <= anonymousPerSecond) return false;
    omitted += 1;
    return true;
  };
  return async (exchange, error) => {
    if (!(error instanceof ApiError) || !isDenial(error, exchange) || alreadyRecorded.has(exchange)) return;
    const record = denialRecord(exchange, audit, error);
    if (isOmitted(record.by.kind)) return;
    const before = omitted;
    omitted = 0;
    try {
      await inUnit((em) => audit.record(em, before === 0 ? record : { ...record, omitted: before }));
    } catch (failure) {
      omitted += before;
      throw failure;
    }
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
