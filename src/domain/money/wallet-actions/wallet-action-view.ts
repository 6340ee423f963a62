import assert from 'node:assert/strict';
import type {
  WalletActionResponse,
  WalletActionStatus,
  WalletActionType,
} from '../../../generated/schemas.ts';
import type { WalletActionRow } from './wallet-action-row.ts';
import { type StoredStep, stepView } from './wallet-action-steps.ts';

const noOutcome: Readonly<Record<string, object>> = {
  transfer: { destination_amount: null, gas: null, fees: null },
};

/** An action in wire form, with its steps when given. */
export function walletActionView(row: WalletActionRow, steps?: readonly StoredStep[]): WalletActionResponse {
  return {
    id: row.id,
    type: row.type,
    wallet_id: row.wallet_id,
    status: row.status,
    created_at: new Date(row.created_at_ms).toISOString(),
    reference_id: row.reference_id,
    ...JSON.parse(row.details),
    ...(row.outcome === null ? noOutcome[row.type] : JSON.parse(row.outcome)),
    ...(steps === undefined ? {} : { steps: steps.map(stepView) }),
  };
}

// Wire fields that responses have and events do not.
const notInEvents = [
  'estimated_gas',
  'estimated_fees',
  'destination_amount',
  'destination_asset',
  'destination_chain',
  'gas',
  'fees',
  'amount_type',
] as const;

const endFields = { succeeded: 'completed_at', rejected: 'rejected_at', failed: 'failed_at' } as const;

/** The event of each action status, by action type. */
const eventTypes: Partial<Record<WalletActionType, Readonly<Record<WalletActionStatus, string>>>> = {
  transfer: {
    pending: 'wallet_action.transfer.created',
    succeeded: 'wallet_action.transfer.succeeded',
    rejected: 'wallet_action.transfer.rejected',
    failed: 'wallet_action.transfer.failed',
  },
};

/** The event type for an action's current status. */
export function actionEventType({ type, status }: WalletActionRow): string {
  const eventType = eventTypes[type]?.[status];
  assert(eventType !== undefined, `no event is defined for actions of type ${type}`);
  return eventType;
}

/** The event payload of an action. */
export function actionEvent(row: WalletActionRow, steps?: readonly StoredStep[]): object {
  const { id, type, ...shown } = walletActionView(row, steps) as unknown as Record<string, unknown>;
  for (const field of notInEvents) delete shown[field];
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
