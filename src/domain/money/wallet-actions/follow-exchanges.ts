import type { SqlEntityManager } from '@mikro-orm/sql';
import type { ExchangeStatus } from '../../../ports/exchange.ts';
import type { Tables } from '../../tables.ts';

// HOT: jobs of several processes claim these rows and move them from status to status. No bench case covers it.

/** CHOICE: how often a pending exchange is polled. */
const AGAIN_MS = 2000;
/** How long a claimed exchange belongs to the process that claimed it. */
const LEASE_MS = 60_000;

/** States of a transaction in which its money has arrived. */
export const depositedStatuses = ['confirmed', 'finalized'] as const;

/** An exchange that has received its deposit. */
export interface DueExchange {
  readonly actionId: string;
  readonly position: number;
  readonly quoteId: string;
  readonly depositHash: string;
}

/**
 * Claims exchanges that are due for polling, the most overdue first, by moving their next check: no other process
 * claims them meanwhile, and the claim of a process that dies expires.
 */
export async function claimDueExchanges(
  em: SqlEntityManager,
  nowMs: number,
  limit: number,
): Promise<readonly DueExchange[]> {
  const due = await em
    .getKysely<Tables>()
    .selectFrom('wallet_action_steps as steps')
    .innerJoin('wallet_action_steps as deposits', (join) =>
      join
        .onRef('deposits.action_id', '=', 'steps.action_id')
        .on((on) => on('deposits.position', '=', on('steps.position', '-', on.lit(1)))),
    )
    .innerJoin('transactions', 'transactions.id', 'deposits.transaction_id')
    .select([
      'steps.action_id as actionId',
      'steps.position',
      'steps.quote_id as quoteId',
      'transactions.transaction_hash as depositHash',
    ])
    .where('steps.next_check_at_ms', '<=', nowMs)
    .where('transactions.status', 'in', depositedStatuses)
    .orderBy('steps.next_check_at_ms')
    .orderBy('steps.action_id')
    .limit(limit)
    .$castTo<DueExchange>()
    .forUpdate('steps')
    .skipLocked()
    .execute();
  for (const exchange of due) await putOff(em, exchange, nowMs + LEASE_MS);
  return due;
}

/**
 * Stores the progress of an exchange. Result: whether it has now ended.
 *
 * INVARIANT: an outcome is stored once and never overwritten.
 */
export async function advanceExchange(
  em: SqlEntityManager,
  exchange: DueExchange,
  { status, nowMs }: { status: ExchangeStatus; nowMs: number },
): Promise<boolean> {
  if (status.kind === 'waiting') {
    await putOff(em, exchange, nowMs + AGAIN_MS);
    return false;
  }
  const { numUpdatedRows } = await em
    .getKysely<Tables>()
    .updateTable('wallet_action_steps')
    .set({
      exchange_status: status.kind,
      hash: status.hash,
      failure_reason: status.kind === 'refunded' ? status.reason : null,
      next_check_at_ms: null,
    })
    .where('action_id', '=', exchange.actionId)
    .where('position', '=', exchange.position)
    .where('exchange_status', '=', 'waiting')
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 1n;
}

/** Stops polling an action's exchange. */
export async function forgetExchange(em: SqlEntityManager, actionId: string): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('wallet_action_steps')
    .set({ next_check_at_ms: null })
    .where('action_id', '=', actionId)
    .where('next_check_at_ms', 'is not', null)
    .execute();
}

async function putOff(
  em: SqlEntityManager,
  { actionId, position }: DueExchange,
  untilMs: number,
): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('wallet_action_steps')
    .set({ next_check_at_ms: untilMs })
    .where('action_id', '=', actionId)
    .where('position', '=', position)
    .where('exchange_status', '=', 'waiting')
    .execute();
}
