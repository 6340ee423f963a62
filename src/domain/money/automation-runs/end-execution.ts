import type { SqlEntityManager } from '@mikro-orm/sql';
import type { StoredExecution } from '../../access/automations/execution.entity.ts';
import type { Tables } from '../../tables.ts';

// HOT: Kysely, not for measured speed: each change is one statement that says whether another process was first.

/** How an execution goes on. */
export type ExecutionChange =
  | { readonly status: 'submitted'; readonly actionId: string; readonly gasCost: string | null }
  | { readonly status: 'failed'; readonly reason: string }
  | { readonly status: 'skipped'; readonly sweptById: string | null; readonly reason?: string };

/**
 * Moves an execution that is still pending.
 *
 * Result: whether it was pending.
 */
export async function moveExecution(
  em: SqlEntityManager,
  id: string,
  { change, nowMs }: { readonly change: ExecutionChange; readonly nowMs: number },
): Promise<boolean> {
  const { numUpdatedRows } = await em
    .getKysely<Tables>()
    .updateTable('wallet_automation_executions')
    .set({
      status: change.status,
      next_run_at_ms: null,
      updated_at_ms: nowMs,
      ...(change.status === 'submitted'
        ? { action_id: change.actionId, gas_cost: change.gasCost, submitted_at_ms: nowMs }
        : {}),
      ...(change.status === 'skipped'
        ? { swept_by_id: change.sweptById, failure_reason: change.reason ?? null }
        : {}),
      ...(change.status === 'failed' ? { failure_reason: change.reason, failed_at_ms: nowMs } : {}),
    })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 1n;
}

/**
 * The execution that swept a deposit together with an earlier one: the last whose transaction is not in a block before
 * the deposit.
 */
export async function findSweep(
  em: SqlEntityManager,
  { walletId, caip2, assetAddress, blockNumber }: StoredExecution,
): Promise<string | null> {
  const sweep = await em
    .getKysely<Tables>()
    .selectFrom('wallet_automation_executions as executions')
    .innerJoin('wallet_action_steps as steps', 'steps.action_id', 'executions.action_id')
    .innerJoin('transactions', 'transactions.id', 'steps.transaction_id')
    .select('executions.id')
    .where('executions.wallet_id', '=', walletId)
    .where('executions.caip2', '=', caip2)
    .where('executions.asset_address', '=', assetAddress)
    .where((where) =>
      where.or([
        where('transactions.block_number', 'is', null),
        where('transactions.block_number', '>=', Number(blockNumber)),
      ]),
    )
    .orderBy('executions.submitted_at_ms', 'desc')
    .orderBy('executions.id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return sweep?.id ?? null;
}

/** Puts off an execution that is still pending. */
export async function putOffExecution(em: SqlEntityManager, id: string, untilMs: number): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('wallet_automation_executions')
    .set({ next_run_at_ms: untilMs })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .execute();
}

/** Removes an execution that nothing but the wallet itself has triggered. */
export async function dropExecution(em: SqlEntityManager, id: string): Promise<void> {
  await em
    .getKysely<Tables>()
    .deleteFrom('wallet_automation_executions')
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .execute();
}

/** Completes or fails the execution that started an action, in the transaction that settles the action. */
export async function endExecutionOfAction(
  em: SqlEntityManager,
  action: { readonly id: string; readonly failure: string | undefined },
  nowMs: number,
): Promise<void> {
  const { failure } = action;
  await em
    .getKysely<Tables>()
    .updateTable('wallet_automation_executions')
    .set({
      updated_at_ms: nowMs,
      ...(failure === undefined
        ? { status: 'completed', completed_at_ms: nowMs }
        : { status: 'failed', failure_reason: failure, failed_at_ms: nowMs }),
    })
    .where('action_id', '=', action.id)
    .where('status', '=', 'submitted')
    .execute();
}
