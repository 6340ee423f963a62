import type { StoredOperator } from './operator.entity.ts';
import type { OperatorOrigin } from './operator-caller.ts';
import type { OperatorRole } from './operator-role.ts';

/** An entry of the audit log about an operator's action. */
export interface RecordedAction {
  readonly at_ms: number;
  readonly by: {
    readonly origin: OperatorOrigin;
    readonly operator_id?: string;
    readonly role?: OperatorRole;
  };
  readonly operation: string;
  readonly ids: Readonly<Record<string, string>>;
  readonly code?: string;
}

/** One thing that an operator did, or was refused. */
export interface OperatorRecord {
  readonly sequence: number;
  readonly entry: RecordedAction;
  readonly operatorName: string | null;
}

/** The operator's representation on the admin port and the command line, without the secret. */
export function operatorView({ id, appId, name, role, createdAtMs }: StoredOperator) {
  return { id, app_id: appId, name, role, created_at_ms: createdAtMs };
}

export function operatorRecordView({ sequence, entry, operatorName }: OperatorRecord) {
  return {
    sequence,
    at_ms: entry.at_ms,
    origin: entry.by.origin,
    operator_id: entry.by.operator_id ?? null,
    operator_name: operatorName,
    operator_role: entry.by.role ?? null,
    action: entry.operation,
    targets: { ...entry.ids },
    result: entry.code ?? 'done',
  };
}
