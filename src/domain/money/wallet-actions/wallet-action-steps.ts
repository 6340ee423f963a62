import assert from 'node:assert/strict';
import type {
  FailureReason,
  FeeLineItem,
  WalletActionStatus,
  WalletActionStep,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { type TransactionRow, transactionColumns } from '../transactions/transaction-row.ts';
import type { TransactionStatus } from '../transactions/transaction-state.ts';

// HOT: jobs of several processes claim these rows and move them from status to status. No bench case covers it.

/** A step that is one of our transactions. */
interface TransactionStep {
  readonly actionId: string;
  readonly type: string;
  readonly transaction: TransactionRow;
}

/** A step performed by the exchange. */
interface ExchangeStep {
  readonly actionId: string;
  readonly type: string;
  readonly exchange: ExchangeState;
  /** The previous step, which pays its deposit. */
  readonly deposit: TransactionStep;
}

export type StoredStep = TransactionStep | ExchangeStep;

/** The last known state of an exchange. */
interface ExchangeState {
  readonly status: 'waiting' | 'paid' | 'refunded';
  /** The chain of the payment. */
  readonly caip2: string;
  readonly delivery: ExchangeDelivery;
  readonly hash: string | null;
  readonly failureReason: string | null;
}

/** The wire fields that change when the exchange pays. */
export interface ExchangeDelivery {
  readonly destination_amount: string;
  readonly fees: readonly FeeLineItem[];
}

const exchangeColumns = [
  'steps.exchange_status',
  'steps.caip2 as exchange_caip2',
  'steps.delivery',
  'steps.hash',
  'steps.failure_reason as exchange_failure_reason',
] as const;

/** The steps of actions, each action's in their order. */
export async function loadSteps(
  { em }: Pick<OperationContext, 'em'>,
  actionIds: readonly string[],
): Promise<ReadonlyMap<string, readonly StoredStep[]>> {
  if (actionIds.length === 0) return new Map();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallet_action_steps as steps')
    .leftJoin('transactions', 'transactions.id', 'steps.transaction_id')
    .select(transactionColumns.map((column) => `transactions.${column}` as const))
    .select(['steps.action_id', 'steps.type', ...exchangeColumns])
    .where('steps.action_id', 'in', actionIds)
    .orderBy('steps.action_id')
    .orderBy('steps.position')
    .execute();
  const steps = new Map<string, StoredStep[]>();
  for (const row of rows) {
    const { action_id: actionId, type, exchange_status: status } = row;
    const own = steps.get(actionId) ?? [];
    steps.set(actionId, own);
    const { exchange_caip2: caip2, delivery, hash, exchange_failure_reason: failureReason, ...rest } = row;
    if (status === null) {
      const { action_id: _action, type: _type, exchange_status: _status, ...transaction } = rest;
      own.push({ actionId, type, transaction: transaction as TransactionRow });
      continue;
    }
    const deposit = own.at(-1);
    assert(deposit !== undefined && 'transaction' in deposit, 'an exchange comes after its deposit');
    const exchange = { status, caip2, delivery: JSON.parse(delivery ?? '{}'), hash, failureReason };
    own.push({ actionId, type, deposit, exchange: exchange as ExchangeState });
  }
  return steps;
}

type StepStatus =
  | 'preparing'
  | 'queued'
  | 'pending'
  | 'confirmed'
  | 'rejected'
  | 'reverted'
  | 'failed'
  | 'replaced'
  | 'abandoned';

/** The step status of each transaction state. CHOICE: a transaction that can never be included is `rejected`. */
const stepStatuses: Readonly<Record<TransactionStatus, StepStatus>> = {
  pending: 'queued',
  broadcasted: 'pending',
  confirmed: 'confirmed',
  finalized: 'confirmed',
  execution_reverted: 'reverted',
  failed: 'rejected',
  replaced: 'replaced',
  provider_error: 'abandoned',
};

const exchangeStatuses = { paid: 'confirmed', refunded: 'failed' } as const;

/** The status of a step. Chains without replacement never have `replaced` or `abandoned`. */
function statusOf(step: StoredStep): StepStatus {
  if ('exchange' in step) return exchangeStatusOf(step);
  const status = stepStatuses[step.transaction.status];
  const isEvm = step.type === 'evm_transaction';
  return !isEvm && (status === 'replaced' || status === 'abandoned') ? 'failed' : status;
}

function exchangeStatusOf({ exchange, deposit }: ExchangeStep): StepStatus {
  if (exchange.status !== 'waiting') return exchangeStatuses[exchange.status];
  if (statusOf(deposit) === 'confirmed') return 'pending';
  // Without its deposit the exchange does not start.
  return hasEnded(deposit) ? 'rejected' : 'preparing';
}

/** Whether a step's outcome is final; a success is final once included. */
function hasEnded(step: StoredStep): boolean {
  const status = statusOf(step);
  if (status === 'preparing' || status === 'queued' || status === 'pending') return false;
  if ('exchange' in step) return true;
  // A reorganization may still undo a revert. A caller that sees `failed` may try again, so it must be final.
  return status !== 'reverted' || step.transaction.next_check_at_ms === null;
}

/** The status of an action, derived from its steps. Source: behaviour, wallet actions. */
export function actionStatusOf(steps: readonly StoredStep[]): WalletActionStatus {
  if (!steps.every(hasEnded)) return 'pending';
  const statuses = steps.map(statusOf);
  if (statuses.every((status) => status === 'confirmed')) return 'succeeded';
  return statuses[0] === 'rejected' ? 'rejected' : 'failed';
}

const reasons: Partial<Readonly<Record<StepStatus, string>>> = {
  rejected: 'The transaction never came into a block and never will.',
  reverted: 'The transaction reverted.',
  failed: 'The transaction failed.',
  replaced: 'Another transaction of the wallet took its nonce.',
  abandoned: 'The transaction was lost on its way to the chain.',
};

/** The failure reason of an action: that of its failed step. */
export function failureOf(steps: readonly StoredStep[]): FailureReason {
  const failed = steps.map(failureOfStep).find((failure) => failure !== undefined);
  return failed ?? { message: 'The action failed.' };
}

function failureOfStep(step: StoredStep): FailureReason | undefined {
  if ('exchange' in step) return failureOfExchange(step);
  const reason = reasons[statusOf(step)];
  return reason === undefined ? undefined : { message: step.transaction.failure_reason ?? reason };
}

function failureOfExchange(step: ExchangeStep): FailureReason | undefined {
  const { exchange, deposit } = step;
  const status = statusOf(step);
  if (status === 'rejected') return { message: 'The exchange has had no deposit.' };
  if (status !== 'failed') return undefined;
  const refund = { caip2: deposit.transaction.caip2, transaction_hash: exchange.hash };
  return {
    message: `The exchange gave the deposit back: ${exchange.failureReason}.`,
    details: { refund },
  };
}

/** The wire field of the hash by step type, where it is not `transaction_hash`. */
const hashFields: Readonly<Record<string, string>> = {
  svm_transaction: 'transaction_signature',
  tvm_transaction: 'transaction_id',
};

/** A step in wire form. */
export function stepView(step: StoredStep): WalletActionStep {
  const failure = failureOfStep(step);
  if ('exchange' in step) {
    const { status, caip2, hash } = step.exchange;
    return {
      type: 'external_transaction',
      caip2,
      status: exchangeStatusOf(step),
      // A refund is not a transaction of this step.
      transaction_hash: status === 'paid' ? hash : null,
      ...(failure === undefined ? {} : { failure_reason: failure }),
    } as WalletActionStep;
  }
  const { type, transaction } = step;
  return {
    type,
    caip2: transaction.caip2,
    status: statusOf(step),
    [hashFields[type] ?? 'transaction_hash']: transaction.transaction_hash,
    ...(type === 'tvm_transaction' ? {} : { finalized: transaction.status === 'finalized' }),
    ...(failure === undefined ? {} : { failure_reason: failure }),
  } as unknown as WalletActionStep;
}
