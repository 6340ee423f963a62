import assert from 'node:assert/strict';
import { ENTRY_POINT_VERSION } from '../../../engine/signing/ethereum/smart-accounts.ts';
import type {
  ExternalTransactionWalletActionStepStatus,
  FailureReason,
  WalletActionStatus,
  WalletActionStep,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Tables } from '../../tables.ts';
import {
  type TransactionRow,
  type TransactionStatus,
  transactionColumns,
} from '../transactions/transaction.entity.ts';

// KYSELY: joins steps with their transactions.

interface TransactionStep {
  readonly actionId: string;
  readonly type: string;
  readonly transaction: TransactionRow;
  /**
   * The movements of the step's transaction. They are loaded only on request, and are empty until they have been read
   * from the chain.
   */
  readonly effects: readonly StoredMovement[];
}

/** A stored movement of an asset. Addresses are in the chain's notation. A `token` of null is the native asset. */
interface StoredMovement {
  readonly token: string | null;
  readonly from: string;
  readonly to: string;
  /** The amount in base units, decimal. */
  readonly rawAmount: string;
}

/** A step that another system carries out. */
interface ExternalStep {
  readonly actionId: string;
  readonly type: string;
  readonly external: ExternalState;
  /** The previous step, whose transaction pays the deposit for this step. */
  readonly deposit: TransactionStep;
}

export type StoredStep = TransactionStep | ExternalStep;

/** The systems that carry out external steps. */
export type ExternalKind = 'exchange' | 'payout';

/**
 * The statuses of an external step:
 * - `waiting`: the deposit has not arrived, or the other system has not paid.
 * - `done`: the other system has paid.
 * - `given_back`: the deposit was refunded.
 * - `refused`: the step ended without the payment, and no transaction of a refund is known.
 */
type ExternalStatus = 'waiting' | 'done' | 'given_back' | 'refused';

/** The last known state of an external step. */
interface ExternalState {
  readonly kind: ExternalKind;
  readonly status: ExternalStatus;
  /** The chain of the payment; null for a bank payment. */
  readonly caip2: string | null;
  /** The wire fields of the action that change when the step is done. */
  readonly delivery: object;
  readonly hash: string | null;
  readonly failureReason: string | null;
}

const stepColumns = [
  'steps.action_id',
  'steps.type',
  'steps.effects',
  'steps.external_kind',
  'steps.external_status',
  'steps.caip2 as external_caip2',
  'steps.delivery',
  'steps.hash',
  'steps.failure_reason as external_failure_reason',
] as const;

/** Loads the steps of actions. The steps of each action are in their order. */
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
    .select(stepColumns)
    .where('steps.action_id', 'in', actionIds)
    .orderBy('steps.action_id')
    .orderBy('steps.position')
    .execute();
  const steps = new Map<string, StoredStep[]>();
  for (const row of rows) {
    const own = steps.get(row.action_id) ?? [];
    steps.set(row.action_id, own);
    own.push(stepOf(row, own.at(-1)));
  }
  return steps;
}

interface StepRow extends Record<(typeof transactionColumns)[number], unknown> {
  readonly action_id: string;
  readonly type: string;
  readonly effects: string | null;
  readonly external_kind: string | null;
  readonly external_status: string | null;
  readonly external_caip2: string | null;
  readonly delivery: string | null;
  readonly hash: string | null;
  readonly external_failure_reason: string | null;
}

function stepOf(row: StepRow, previous: StoredStep | undefined): StoredStep {
  const { action_id: actionId, type, effects, external_kind: kind, external_status: status } = row;
  if (status === null) {
    const columns = transactionColumns.map((column) => [column, row[column]]);
    const transaction = Object.fromEntries(columns) as TransactionRow;
    return { actionId, type, transaction, effects: JSON.parse(effects ?? '[]') };
  }
  assert(previous !== undefined && 'transaction' in previous, 'an external step comes after its deposit');
  return {
    actionId,
    type,
    deposit: previous,
    external: {
      kind: kind as ExternalKind,
      status: status as ExternalStatus,
      caip2: row.external_caip2,
      delivery: JSON.parse(row.delivery ?? '{}'),
      hash: row.hash,
      failureReason: row.external_failure_reason,
    },
  };
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

/**
 * The step status for each transaction state.
 *
 * CHOICE: the step of a transaction that can never be included is `rejected`.
 */
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

const externalStatuses = { done: 'confirmed', given_back: 'failed', refused: 'failed' } as const;

const evmTypes: ReadonlySet<string> = new Set(['evm_transaction', 'evm_user_operation']);

/** Returns the status of a step. On chains without replacement, a step is never `replaced` or `abandoned`. */
function statusOf(step: StoredStep): StepStatus {
  if ('external' in step) return externalStatusOf(step);
  const status = stepStatuses[step.transaction.status];
  const isLost = status === 'replaced' || status === 'abandoned';
  return isLost && !evmTypes.has(step.type) ? 'failed' : status;
}

function externalStatusOf({ external, deposit }: ExternalStep): ExternalTransactionWalletActionStepStatus {
  if (external.status !== 'waiting') return externalStatuses[external.status];
  if (statusOf(deposit) === 'confirmed') return 'pending';
  // The step does not start before its deposit arrives.
  return hasEnded(deposit) ? 'rejected' : 'preparing';
}

/** Returns whether a step's outcome is final. A success counts as final once it is included. */
function hasEnded(step: StoredStep): boolean {
  const status = statusOf(step);
  if (status === 'preparing' || status === 'queued' || status === 'pending') return false;
  if ('external' in step) return true;
  // A reorganization may still undo a revert. A caller that sees `failed` may retry, so a failure must be final.
  return status !== 'reverted' || step.transaction.next_check_at_ms === null;
}

/** Returns whether a step took effect. */
export function hasHappened(step: StoredStep): boolean {
  return statusOf(step) === 'confirmed';
}

/** Derives the status of an action from its steps. */
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

export function failureOf(steps: readonly StoredStep[]): FailureReason {
  const failed = steps.map(failureOfStep).find((failure) => failure !== undefined);
  return failed ?? { message: 'The action failed.' };
}

function failureOfStep(step: StoredStep): FailureReason | undefined {
  if ('external' in step) return failureOfExternal(step);
  const reason = reasons[statusOf(step)];
  return reason === undefined ? undefined : { message: step.transaction.failure_reason ?? reason };
}

const parties: Readonly<Record<ExternalKind, string>> = {
  exchange: 'The exchange',
  payout: 'The payout provider',
};

function failureOfExternal(step: ExternalStep): FailureReason | undefined {
  const { external, deposit } = step;
  const party = parties[external.kind];
  const status = statusOf(step);
  if (status === 'rejected') return { message: `${party} has had no deposit.` };
  if (status !== 'failed') return undefined;
  if (external.status === 'refused') return { message: `${party} did not pay: ${external.failureReason}.` };
  const refund = { caip2: deposit.transaction.caip2, transaction_hash: external.hash };
  return {
    message: `${party} gave the deposit back: ${external.failureReason}.`,
    details: { refund },
  };
}

/** Converts a step to wire form. */
export function stepView(step: StoredStep): WalletActionStep {
  const failure = failureOfStep(step);
  const reason = failure === undefined ? {} : { failure_reason: failure };
  return 'external' in step ? { ...externalView(step), ...reason } : { ...transactionView(step), ...reason };
}

function externalView(step: ExternalStep): WalletActionStep {
  const { status, caip2, hash } = step.external;
  return {
    type: 'external_transaction',
    ...(caip2 === null ? {} : { caip2 }),
    status: externalStatusOf(step),
    // The hash of a refund is not shown, because the refund is not a transaction of this step.
    ...(caip2 === null ? {} : { transaction_hash: status === 'done' ? hash : null }),
  };
}

function transactionView(step: TransactionStep): WalletActionStep {
  const { type, transaction } = step;
  const view = {
    type,
    caip2: transaction.caip2,
    status: statusOf(step),
    ...hashesOf(step),
    ...(type === 'tvm_transaction' ? {} : { finalized: transaction.status === 'finalized' }),
  };
  // The type of a step determines its fields and statuses.
  return view as WalletActionStep;
}

/** The wire field of the hash for step types that do not use `transaction_hash`. */
const hashFields: Readonly<Record<string, string>> = {
  svm_transaction: 'transaction_signature',
  tvm_transaction: 'transaction_id',
};

function hashesOf({ type, transaction }: TransactionStep): object {
  const { transaction_hash: hash, user_operation_hash: operationHash } = transaction;
  if (type !== 'evm_user_operation') return { [hashFields[type] ?? 'transaction_hash']: hash };
  return {
    user_operation_hash: operationHash,
    bundle_transaction_hash: hash,
    entrypoint_version: ENTRY_POINT_VERSION,
  };
}
