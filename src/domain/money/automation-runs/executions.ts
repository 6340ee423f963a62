import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
import { ExecutionEntity, type StoredExecution } from '../../access/automations/automation.entity.ts';
import { type Claimant, claimedUntil } from '../../base/processes/server-processes.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';

// KYSELY: a correlated subquery finds the first open execution of each asset.

/** How long a claim of an execution lasts. */
const LEASE_MS = 60_000;
/** CHOICE: an execution is retried for this time while a chain or service is unreachable. */
const RETRY_MS = 600_000;

const dueOf = (database: Kysely<Tables>, { nowMs, limit }: { nowMs: number; limit: number }) =>
  database
    .selectFrom('wallet_automation_executions as due')
    .select(['due.id', 'due.retry_until_ms as retryUntilMs'])
    .where('due.next_run_at_ms', '<=', nowMs)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('wallet_automation_executions as open')
            .select('open.id')
            .whereRef('open.wallet_id', '=', 'due.wallet_id')
            .whereRef('open.caip2', '=', 'due.caip2')
            .whereRef('open.asset_address', '=', 'due.asset_address')
            .where('open.status', 'in', ['pending', 'submitted'])
            .where((earlier) =>
              earlier.or([
                earlier('open.created_at_ms', '<', earlier.ref('due.created_at_ms')),
                earlier.and([
                  earlier('open.created_at_ms', '=', earlier.ref('due.created_at_ms')),
                  earlier('open.id', '<', earlier.ref('due.id')),
                ]),
              ]),
            ),
        ),
      ),
    )
    .orderBy('due.next_run_at_ms')
    .orderBy('due.id')
    .limit(limit)
    .forUpdate('due')
    .skipLocked();

const selectDue = prepareQuery(dueOf);

/**
 * Claims due executions, most overdue first, by moving their next run.
 *
 * INVARIANT: for each wallet, chain and asset, only the oldest open execution is claimed. A later execution would sweep
 * the same money while the transactions of the first one are pending.
 *
 * @param busy CAIP-2 ids of busy chains, whose executions are not claimed.
 */
export async function claimDueExecutions(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { busy, limit }: { readonly busy: readonly string[]; readonly limit: number },
): Promise<readonly StoredExecution[]> {
  const database = em.getKysely<Tables>();
  const wanted = { nowMs, limit };
  const due =
    busy.length === 0
      ? (await selectDue(em, wanted)).rows
      : await dueOf(database, wanted).where('due.caip2', 'not in', busy).execute();
  for (const { id, retryUntilMs } of due) {
    await em.nativeUpdate(
      ExecutionEntity,
      { id },
      { nextRunAtMs: nowMs + LEASE_MS, retryUntilMs: retryUntilMs ?? nowMs + RETRY_MS, claimedBy: owner },
    );
  }
  if (due.length === 0) return [];
  return em.find(
    ExecutionEntity,
    { id: { $in: due.map(({ id }) => id) } },
    { orderBy: { createdAtMs: 'asc', id: 'asc' } },
  );
}

/** Makes the executions that a dead process had claimed due again. */
export async function releaseExecutionsOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    ExecutionEntity,
    { claimedBy: dead.owner, nextRunAtMs: claimedUntil(dead) },
    { nextRunAtMs: dead.nowMs },
  );
}

/** The next state of an execution, with the columns that are set together with it. */
type ExecutionChange =
  | { readonly status: 'submitted'; readonly actionId: string; readonly gasCost: string | null }
  | { readonly status: 'failed'; readonly reason: string }
  | { readonly status: 'skipped'; readonly sweptById: string | null; readonly reason?: string };

/** Moves an execution to its next state if it is still pending. Returns whether it was pending. */
export async function moveExecution(
  em: SqlEntityManager,
  id: string,
  { change, nowMs }: { readonly change: ExecutionChange; readonly nowMs: number },
): Promise<boolean> {
  const moved = await em.nativeUpdate(
    ExecutionEntity,
    { id, status: 'pending' },
    {
      status: change.status,
      nextRunAtMs: null,
      updatedAtMs: nowMs,
      ...(change.status === 'submitted'
        ? { actionId: change.actionId, gasCost: change.gasCost, submittedAtMs: nowMs }
        : {}),
      ...(change.status === 'skipped'
        ? { sweptById: change.sweptById, failureReason: change.reason ?? null }
        : {}),
      ...(change.status === 'failed' ? { failureReason: change.reason, failedAtMs: nowMs } : {}),
    },
  );
  return moved === 1;
}

/**
 * Finds the execution that swept this deposit together with an earlier one: the asset's last execution with a
 * transaction that no block includes yet, or that is in the block of this deposit or a later one. Returns null if there
 * is none.
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

/** Postpones an execution that is still pending. */
export async function putOffExecution(em: SqlEntityManager, id: string, untilMs: number): Promise<void> {
  await em.nativeUpdate(ExecutionEntity, { id, status: 'pending' }, { nextRunAtMs: untilMs });
}

/** Deletes a pending execution that turned out to be triggered by the wallet's own transfer. */
export async function dropExecution(em: SqlEntityManager, id: string): Promise<void> {
  await em.nativeDelete(ExecutionEntity, { id, status: 'pending' });
}

/** Completes or fails the execution that started an action. Runs in the transaction that settles the action. */
export async function endExecutionOfAction(
  em: SqlEntityManager,
  action: { readonly id: string; readonly failure: string | undefined },
  nowMs: number,
): Promise<void> {
  const { failure } = action;
  const ended =
    failure === undefined
      ? { status: 'completed', completedAtMs: nowMs }
      : { status: 'failed', failureReason: failure, failedAtMs: nowMs };
  await em.nativeUpdate(
    ExecutionEntity,
    { actionId: action.id, status: 'submitted' },
    { ...ended, updatedAtMs: nowMs },
  );
}
