import type { SqlEntityManager } from '@mikro-orm/sql';
import type { ExchangeStatus } from '../../../ports/exchange.ts';
import type { Tables } from '../../tables.ts';

/** CHOICE: an exchange that has not ended is asked again after so long. */
const AGAIN_MS = 2000;
/** How long a claimed exchange is left to the process that claimed it. */
const LEASE_MS = 60_000;

/** States of a transaction in which its money has arrived. */
export const depositedStatuses = ['confirmed', 'finalized'] as const;

/** An exchange that has had its deposit. */
export interface DueExchange {
  readonly actionId: string;
  readonly position: number;
  readonly quoteId: string;
  readonly depositHash: string;
}

/**
 * Takes exchanges that are due to be asked about, the longest due first, and puts their next time off: no other process
 * takes them meanwhile, and one that dies gives them back.
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
 * Writes down how far an exchange has come. Result: whether it has ended now.
 *
 * INVARIANT: an end is written once; what was told before stays.
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

/** Asks about an action's exchange no more. */
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
