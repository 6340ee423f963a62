import type { SqlEntityManager } from '@mikro-orm/sql';
import { decimalText, readDecimal, ZERO } from '../../../engine/assets/decimal.ts';
import type { OperationContext, Services, UnitContext } from '../../../ports/operation-context.ts';
import { recordEvent } from '../../base/events/events.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { worthOf } from '../../wallets/balances/balances.ts';
import { openStatuses } from '../transactions/transaction.entity.ts';
import { actionTypeOf, type EndedSteps } from './action-types.ts';
import { includedStatuses, stopChecks } from './due-steps.ts';
import { WalletActionEntity, type WalletActionRow, walletActionColumns } from './wallet-action.entity.ts';
import { actionEvent, actionEventType, walletActionView } from './wallet-action.ts';
import { actionStatusOf, failureOf, loadSteps, type StoredStep } from './wallet-action-steps.ts';

// KYSELY: claims actions by a subquery over their steps and transactions.

/** The maximum number of actions that are settled in one transaction. */
const BATCH = 50;

export interface EndedAction {
  readonly id: string;
  /** The action in the wire form of its operation. */
  readonly view: object;
  /** Why the action failed; undefined on success. */
  readonly failure: string | undefined;
}

/**
 * Settles actions whose steps have all ended, and records their events. Several processes can run it at the same time,
 * because each skips rows that another has claimed. Returns the settled actions.
 */
export async function finishWalletActions(
  services: Pick<Services, 'ids' | 'prices'>,
  { em, notes }: UnitContext,
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
    const outcome = JSON.stringify(outcomeOf(action, status, own));
    const row = { ...action, status, outcome, ended_at_ms: nowMs };
    await em.nativeUpdate(WalletActionEntity, { id: row.id }, { status, outcome, endedAtMs: nowMs });
    // If a deposit never arrived, the checks of its external step must end, too.
    await stopChecks(em, row.id);
    const context = { ...services, em, notes, nowMs };
    await recordEvent(context, {
      appId: row.app_id,
      type: actionEventType(row),
      payload: actionEvent(row, own),
    });
    if (status === 'succeeded') await recordProviderFee(context, row, own);
    ended.push({
      id: row.id,
      view: walletActionView(row),
      failure: status === 'succeeded' ? undefined : failureOf(own).message,
    });
  }
  return ended;
}

/**
 * Claims pending actions without an open step, oldest first. Actions that still wait do not use up the batch. A step is
 * open in four cases:
 * - its transaction is in no block;
 * - its revert may still be undone;
 * - the effects in its block have not been read;
 * - it is external, its deposit has arrived, and it waits for the other system.
 */
async function claimEnded(em: SqlEntityManager): Promise<WalletActionRow[]> {
  const { rows } = await selectEnded(em, {});
  return rows;
}

const selectEnded = prepareQuery<Record<never, never>, WalletActionRow>((database) =>
  database
    .selectFrom('wallet_actions')
    .select(walletActionColumns)
    .where('status', '=', 'pending')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('wallet_action_steps as steps')
            .leftJoin('transactions as own', 'own.id', 'steps.transaction_id')
            .leftJoin('wallet_action_steps as deposits', (join) =>
              join
                .onRef('deposits.action_id', '=', 'steps.action_id')
                .on((on) => on('deposits.position', '=', on('steps.position', '-', on.lit(1)))),
            )
            .leftJoin('transactions as paid', 'paid.id', 'deposits.transaction_id')
            .select('steps.action_id')
            .whereRef('steps.action_id', '=', 'wallet_actions.id')
            .where((open) =>
              open.or([
                open('own.status', 'in', openStatuses),
                open.and([
                  open('own.status', '=', 'execution_reverted'),
                  open('own.next_check_at_ms', 'is not', null),
                ]),
                open.and([
                  open('own.status', 'in', includedStatuses),
                  open('steps.next_check_at_ms', 'is not', null),
                  open('steps.effects_block_number', 'is distinct from', open.ref('own.block_number')),
                ]),
                open.and([
                  open('steps.external_status', '=', 'waiting'),
                  open('paid.status', 'in', includedStatuses),
                ]),
              ]),
            ),
        ),
      ),
    )
    .orderBy('created_at_ms')
    .orderBy('id')
    .limit(BATCH)
    .$castTo<WalletActionRow>()
    .forUpdate()
    .skipLocked(),
);

/** Returns the wire fields that change when an action settles. */
function outcomeOf(
  action: WalletActionRow,
  status: EndedSteps['status'],
  steps: readonly StoredStep[],
): object {
  const type = actionTypeOf(action.type);
  const ended = endedSteps(action, status, steps);
  const outcome = type.outcome(ended);
  if (status === 'succeeded') return outcome;
  const { message, details: known } = failureOf(steps);
  const further = { ...(known as object | undefined), ...type.failureDetails?.(ended) };
  const hasDetails = Object.keys(further).length > 0;
  return { ...outcome, failure_reason: { message, ...(hasDetails ? { details: further } : {}) } };
}

function endedSteps(
  { details, terms }: WalletActionRow,
  status: EndedSteps['status'],
  steps: readonly StoredStep[],
): EndedSteps {
  return {
    ...{ status, steps },
    details: JSON.parse(details),
    terms: terms === null ? undefined : JSON.parse(terms),
  };
}

/**
 * Records the fee that the exchange of an action charged. This happens once, because an action ends once.
 *
 * CHOICE: the fee is priced when the action ends. A fee in an asset without a price costs nothing.
 */
async function recordProviderFee(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs' | 'prices'>,
  row: WalletActionRow,
  steps: readonly StoredStep[],
): Promise<void> {
  const fee = actionTypeOf(row.type).providerFee?.(endedSteps(row, 'succeeded', steps));
  const amount = readDecimal(fee?.amount ?? '0');
  if (fee === undefined || amount === undefined || amount.digits === 0n) return;
  const price = readDecimal((await context.prices.inUsd([fee.asset])).get(fee.asset) ?? '0') ?? ZERO;
  await recordEvent(context, {
    appId: row.app_id,
    type: 'usage.swap_provider_fee.recorded',
    payload: {
      event_id: context.ids.cuid2(),
      amount_usd: decimalText(worthOf(amount, price)),
      recorded_at: context.nowMs,
      source_type: `wallet-action-${row.type}`,
      source_id: row.id,
    },
  });
}
