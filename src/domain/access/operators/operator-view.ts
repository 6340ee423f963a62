import type { StoredOperator } from './operator.entity.ts';
import type { StoredOperatorRecord } from './operator-record.entity.ts';

/** The operator's representation on the admin port and the command line, without the secret. */
export function operatorView({ id, appId, name, role, createdAtMs }: StoredOperator) {
  return { id, app_id: appId, name, role, created_at_ms: createdAtMs };
}

export function operatorRecordView(record: StoredOperatorRecord) {
  return {
    sequence: record.sequence,
    at_ms: record.atMs,
    origin: record.origin,
    operator_id: record.operatorId,
    operator_name: record.operatorName,
    operator_role: record.operatorRole,
    action: record.action,
    targets: { ...record.targets },
    result: record.result,
  };
}
