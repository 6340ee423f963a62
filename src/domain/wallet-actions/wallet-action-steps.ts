import type { WalletActionStatus, WalletActionStep } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import { type TransactionRow, transactionColumns } from '../transactions/transaction-row.ts';
import type { TransactionStatus } from '../transactions/transaction-state.ts';

/** A step with the transaction that it is. */
export interface StoredStep {
  readonly actionId: string;
  readonly type: string;
  readonly transaction: TransactionRow;
}

/** The steps of actions, each action's in their order. */
export async function loadSteps(
  { em }: Pick<OperationContext, 'em'>,
  actionIds: readonly string[],
): Promise<ReadonlyMap<string, readonly StoredStep[]>> {
  if (actionIds.length === 0) return new Map();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallet_action_steps as steps')
    .innerJoin('transactions', 'transactions.id', 'steps.transaction_id')
    .select(transactionColumns.map((column) => `transactions.${column}` as const))
    .select(['steps.action_id', 'steps.type'])
    .where('steps.action_id', 'in', actionIds)
    .orderBy('steps.action_id')
    .orderBy('steps.position')
    .execute();
  const steps = rows.map(({ action_id: actionId, type, ...transaction }) => ({
    actionId,
    type,
    transaction: transaction as TransactionRow,
  }));
  return Map.groupBy(steps, (step) => step.actionId);
}

type StepStatus =
  | 'queued'
  | 'pending'
  | 'confirmed'
  | 'rejected'
  | 'reverted'
  | 'failed'
  | 'replaced'
  | 'abandoned';

/** What a transaction's state means for its step. CHOICE: what can never come into a block is `rejected`. */
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

/** Where a step stands. On chains without replacement nothing is `replaced` or `abandoned`. */
function statusOf({ type, transaction }: StoredStep): StepStatus {
  const status = stepStatuses[transaction.status];
  const isEvm = type === 'evm_transaction';
  return !isEvm && (status === 'replaced' || status === 'abandoned') ? 'failed' : status;
}

/** Whether nothing can change a step's end any more; a success counts from the block that has it. */
function hasEnded(step: StoredStep): boolean {
  const status = statusOf(step);
  if (status === 'queued' || status === 'pending') return false;
  // A reorganization may still bring back what reverted: whoever is told `failed` may try again, so it must be final.
  return status !== 'reverted' || step.transaction.next_check_at_ms === null;
}

/** Where an action stands by its steps. Source: behaviour, wallet actions. */
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

/** Why an action did not succeed, in the words of the step that did not. */
export function failureOf(steps: readonly StoredStep[]): { message: string } {
  const failed = steps.map(failureOfStep).find((failure) => failure !== undefined);
  return failed ?? { message: 'The action failed.' };
}

function failureOfStep(step: StoredStep): { message: string } | undefined {
  const reason = reasons[statusOf(step)];
  return reason === undefined ? undefined : { message: step.transaction.failure_reason ?? reason };
}

/** The wire fields of the hash that are not `transaction_hash`, by the kind of step. */
const hashFields: Readonly<Record<string, string>> = {
  svm_transaction: 'transaction_signature',
  tvm_transaction: 'transaction_id',
};

/** A step as the contract shows it. */
export function stepView(step: StoredStep): WalletActionStep {
  const { type, transaction } = step;
  const failure = failureOfStep(step);
  return {
    type,
    caip2: transaction.caip2,
    status: statusOf(step),
    [hashFields[type] ?? 'transaction_hash']: transaction.transaction_hash,
    ...(type === 'tvm_transaction' ? {} : { finalized: transaction.status === 'finalized' }),
    ...(failure === undefined ? {} : { failure_reason: failure }),
  } as unknown as WalletActionStep;
}
