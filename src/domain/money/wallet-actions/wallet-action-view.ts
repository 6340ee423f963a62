import type { WalletActionResponse } from '../../../generated/schemas.ts';
import { actionTypeOf } from './action-types.ts';
import type { WalletActionRow } from './wallet-action-row.ts';
import { type StoredStep, stepView } from './wallet-action-steps.ts';

/** An action in wire form, with its steps when given. */
export function walletActionView(row: WalletActionRow, steps?: readonly StoredStep[]): WalletActionResponse {
  const fields = fieldsOf(row, steps);
  for (const field of actionTypeOf(row.type).onlyInEvents ?? []) delete fields[field];
  return fields as unknown as WalletActionResponse;
}

function fieldsOf(row: WalletActionRow, steps?: readonly StoredStep[]): Record<string, unknown> {
  return {
    id: row.id,
    type: row.type,
    wallet_id: row.wallet_id,
    status: row.status,
    created_at: new Date(row.created_at_ms).toISOString(),
    reference_id: row.reference_id,
    ...actionTypeOf(row.type).ifNotStored,
    ...JSON.parse(row.details),
    ...(row.outcome === null ? actionTypeOf(row.type).pending : JSON.parse(row.outcome)),
    ...(steps === undefined ? {} : { steps: steps.map(stepView) }),
  };
}

const endFields = { succeeded: 'completed_at', rejected: 'rejected_at', failed: 'failed_at' } as const;

/** The event type for an action's current status. */
export function actionEventType({ type, status }: WalletActionRow): string {
  return actionTypeOf(type).events[status];
}

/** The event payload of an action. */
export function actionEvent(row: WalletActionRow, steps?: readonly StoredStep[]): object {
  const { id, type, ...shown } = fieldsOf(row, steps);
  const { notInEvents, onlyInSuccess = [] } = actionTypeOf(row.type);
  for (const field of notInEvents) delete shown[field];
  if (row.status !== 'succeeded') for (const field of onlyInSuccess) delete shown[field];
  const { status, ended_at_ms: endedAtMs } = row;
  return {
    ...shown,
    wallet_action_id: id,
    action_type: type,
    ...(status === 'pending' || endedAtMs === null
      ? {}
      : { [endFields[status]]: new Date(endedAtMs).toISOString() }),
  };
}
