import type { SqlEntityManager } from '@mikro-orm/sql';
import type { AuditRecord } from '../../../ports/audit/audit-trail.ts';
import { writeRecord } from '../../base/audit/write-record.ts';
import type { OperatorCaller } from './operator-caller.ts';

/** What recording needs. */
export interface RecordingContext {
  readonly em: SqlEntityManager;
  readonly nowMs: number;
  readonly by: OperatorCaller;
}

/** The longest recorded target. Ids are shorter; callers can send longer texts in their place. */
const MAX_TARGET = 100;

/**
 * Records a change in its transaction, in the audit log. `targets` are ids and roles, never secrets.
 *
 * @param change `appId`: null if it concerns no app.
 */
export function recordChange(
  context: RecordingContext,
  change: {
    readonly appId: string | null;
    readonly action: string;
    readonly targets: Record<string, string>;
  },
): Promise<void> {
  return record(context, { ...change, result: 'done' });
}

/** Records that an operator read something or was refused. `result` is `done` or an error code. */
export async function recordCall(
  context: RecordingContext,
  call: { readonly action: string; readonly targets: Record<string, string>; readonly result: string },
): Promise<void> {
  const { operator } = context.by;
  if (operator === undefined) return;
  await record(context, { ...call, appId: operator.appId });
}

/** Records that a call on the admin port had a secret that is not that of an operator. */
export function recordWrongSecret(
  { em, nowMs }: Pick<RecordingContext, 'em' | 'nowMs'>,
  call: Pick<AuditRecord, 'operation' | 'requestId' | 'code' | 'status' | 'omitted'>,
): Promise<void> {
  const by = { kind: 'operator', origin: 'admin_port' } as const;
  return writeRecord(em, { ...call, atMs: nowMs, appId: null, by, ids: {}, decision: 'deny' });
}

interface Action {
  readonly appId: string | null;
  readonly action: string;
  readonly targets: Readonly<Record<string, string>>;
  readonly result: string;
}

function record(
  { em, nowMs, by: { origin, operator } }: RecordingContext,
  { appId, action, targets, result }: Action,
): Promise<void> {
  // Paths can contain control characters, which would reach the terminal of the reader.
  const short = Object.entries(targets).map(([name, value]) => [
    name,
    value.slice(0, MAX_TARGET).replaceAll(/\p{Cc}/gu, '?'),
  ]);
  return writeRecord(em, {
    atMs: nowMs,
    appId,
    by: { kind: 'operator', origin, operatorId: operator?.id, role: operator?.role },
    operation: action,
    ids: Object.fromEntries(short),
    decision: result === 'operator_role_required' ? 'deny' : 'allow',
    code: result === 'done' ? undefined : result,
  });
}
