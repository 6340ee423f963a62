import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Services } from '../../../operation-context.ts';
import { chainOfCaip2 } from '../../access/chains/known-chains.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { depositedStatuses, forgetExchange } from './follow-exchanges.ts';
import { gasOf } from './plan-transfer.ts';
import { type WalletActionRow, walletActionColumns } from './wallet-action-row.ts';
import { actionStatusOf, failureOf, loadSteps, type StoredStep } from './wallet-action-steps.ts';
import { actionEvent, actionEventType, walletActionView } from './wallet-action-view.ts';

// HOT: jobs of several processes claim these rows and move them from status to status. No bench case covers it.

/** Actions settled in one transaction. */
const BATCH = 50;

/** A settled wallet action. */
export interface EndedAction {
  readonly id: string;
  /** The action as its operation returns it now. */
  readonly view: object;
  /** Undefined on success. */
  readonly failure: string | undefined;
}

const endStatuses = ['confirmed', 'finalized', 'failed', 'replaced', 'provider_error'] as const;

/**
 * Settles the actions whose transactions and exchanges have ended, and records their events. Safe to run in several
 * processes: claimed rows are skipped by the others.
 *
 * Result: the actions settled.
 */
export async function finishWalletActions(
  services: Pick<Services, 'ids'>,
  em: SqlEntityManager,
  nowMs: number,
): Promise<EndedAction[]> {
  const actions = await claimEnded(em);
  const steps = await loadSteps(
    { em },
    actions.map(({ id }) => id),
  );
  const ended: EndedAction[] = [];
  for (const action of actions) {
    const own = steps.get(action.id) ?? [];
    const status = actionStatusOf(own);
    if (status === 'pending') continue;
    const row = {
      ...action,
      status,
      outcome: JSON.stringify(outcomeOf(action, status, own)),
      ended_at_ms: nowMs,
    };
    await em
      .getKysely<Tables>()
      .updateTable('wallet_actions')
      .set({ status, outcome: row.outcome, ended_at_ms: nowMs })
      .where('id', '=', row.id)
      .execute();
    // The exchange is no longer polled for a deposit that never arrived.
    if (own.some((step) => 'exchange' in step)) await forgetExchange(em, row.id);
    await recordEvent(
      { ...services, em, nowMs },
      { appId: row.app_id, type: actionEventType(row), payload: actionEvent(row, own) },
    );
    ended.push({
      id: row.id,
      view: walletActionView(row),
      failure: status === 'succeeded' ? undefined : failureOf(own).message,
    });
  }
  return ended;
}

async function claimEnded(em: SqlEntityManager): Promise<WalletActionRow[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallet_actions')
    .select(walletActionColumns)
    .where('status', '=', 'pending')
    .where((where) =>
      where.exists(
        where
          .selectFrom('wallet_action_steps as steps')
          .innerJoin('transactions', 'transactions.id', 'steps.transaction_id')
          .leftJoin('wallet_action_steps as exchanges', (join) =>
            join
              .onRef('exchanges.action_id', '=', 'steps.action_id')
              .on('exchanges.exchange_status', '=', 'waiting'),
          )
          .select('steps.action_id')
          .whereRef('steps.action_id', '=', 'wallet_actions.id')
          // Once the deposit is confirmed, the exchange's outcome settles the action.
          .where((where) =>
            where.or([
              where('exchanges.action_id', 'is', null),
              where('transactions.status', 'not in', depositedStatuses),
            ]),
          )
          .where((ended) =>
            ended.or([
              ended('transactions.status', 'in', endStatuses),
              ended.and([
                ended('transactions.status', '=', 'execution_reverted'),
                ended('transactions.next_check_at_ms', 'is', null),
              ]),
            ]),
          ),
      ),
    )
    .orderBy('created_at_ms')
    .orderBy('id')
    .limit(BATCH)
    .forUpdate()
    .skipLocked()
    .execute();
  return rows as WalletActionRow[];
}

/** The wire fields that change when a transfer settles. */
function outcomeOf(action: WalletActionRow, status: string, steps: readonly StoredStep[]): object {
  const hasSucceeded = status === 'succeeded';
  const details = JSON.parse(action.details) as { readonly source_amount: string };
  const exchanged = steps.find((step) => 'exchange' in step);
  const delivery = exchanged?.exchange.delivery ?? {
    // A plain transfer arrives in full.
    destination_amount: details.source_amount,
    fees: [],
  };
  return {
    ...(hasSucceeded ? delivery : { destination_amount: null, fees: null }),
    gas: gasPaid(steps),
    ...(hasSucceeded ? {} : { failure_reason: failureOf(steps) }),
  };
}

/** The network fees of all steps together; null when there were none. */
function gasPaid(steps: readonly StoredStep[]): object | null {
  const transactions = steps.flatMap((step) => ('transaction' in step ? step.transaction : []));
  const paid = transactions.flatMap(({ fee_paid: fee }) => fee ?? []);
  const chain = chainOfCaip2(transactions[0]?.caip2 ?? '');
  if (paid.length === 0 || chain === undefined) return null;
  return gasOf(
    chain,
    paid.reduce((sum, fee) => sum + BigInt(fee), 0n),
  );
}
