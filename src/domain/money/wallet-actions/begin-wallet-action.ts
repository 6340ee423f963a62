import { ApiError } from '../../../errors.ts';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import type { WalletActionRow } from './wallet-action-row.ts';
import type { ExchangeDelivery } from './wallet-action-steps.ts';
import { actionEvent, actionEventType } from './wallet-action-view.ts';

// HOT: jobs of several processes claim these rows and move them from status to status. No bench case covers it.

export interface NewWalletAction {
  readonly type: WalletActionType;
  readonly nonce: string | undefined;
  readonly referenceId: string | undefined;
  /** The type's own wire fields. */
  readonly details: object;
  readonly steps: readonly (NewTransactionStep | NewExchangeStep)[];
}

interface NewTransactionStep {
  /** The contract's name of its kind. */
  readonly type: string;
  readonly transactionId: string;
}

/** The exchange's step, after it received the deposit of the previous step. */
export interface NewExchangeStep {
  readonly type: 'external_transaction';
  /** The chain of the payment. */
  readonly caip2: string;
  readonly quoteId: string;
  readonly delivery: ExchangeDelivery;
}

/**
 * Stores a new action with its steps and records its event.
 *
 * @throws ApiError resource_conflict when another request has used this nonce.
 */
export async function beginWalletAction(
  context: OperationContext,
  walletId: string,
  action: NewWalletAction,
): Promise<WalletActionRow> {
  const row: WalletActionRow = {
    id: context.ids.uuid(),
    app_id: context.app.id,
    wallet_id: walletId,
    type: action.type,
    status: 'pending',
    nonce: action.nonce ?? null,
    reference_id: action.referenceId ?? null,
    details: JSON.stringify(action.details),
    outcome: null,
    created_at_ms: context.nowMs,
    ended_at_ms: null,
  };
  const database = context.em.getKysely<Tables>();
  // INVARIANT: a unique index over wallet and nonce admits exactly one of several concurrent requests.
  const { numInsertedOrUpdatedRows } = await database
    .insertInto('wallet_actions')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows !== 1n) throw nonceSeen();
  await database
    .insertInto('wallet_action_steps')
    .values(
      action.steps.map((step, position) => ({
        ...{ action_id: row.id, position, type: step.type },
        ...('quoteId' in step ? exchangeColumns(step, context.nowMs) : transactionColumns(step)),
      })),
    )
    .execute();
  await recordEvent(context, {
    appId: context.app.id,
    type: actionEventType(row),
    payload: actionEvent(row),
  });
  return row;
}

const transactionColumns = ({ transactionId }: NewTransactionStep) => ({
  transaction_id: transactionId,
  ...{ caip2: null, quote_id: null, delivery: null, exchange_status: null, next_check_at_ms: null },
});

const exchangeColumns = ({ caip2, quoteId, delivery }: NewExchangeStep, nowMs: number) => ({
  transaction_id: null,
  ...{ caip2, quote_id: quoteId, delivery: JSON.stringify(delivery) },
  ...{ exchange_status: 'waiting', next_check_at_ms: nowMs },
});

/**
 * Refuses a nonce the wallet has already used, before any chain call or signature.
 *
 * @throws ApiError resource_conflict
 */
export async function requireFreshNonce(
  { em }: Pick<OperationContext, 'em'>,
  walletId: string,
  nonce: string | undefined,
): Promise<void> {
  if (nonce === undefined) return;
  const seen = await em
    .getKysely<Tables>()
    .selectFrom('wallet_actions')
    .select('id')
    .where('wallet_id', '=', walletId)
    .where('nonce', '=', nonce)
    .executeTakeFirst();
  if (seen !== undefined) throw nonceSeen();
}

function nonceSeen(): ApiError {
  return new ApiError('resource_conflict', '/nonce: the wallet has seen this nonce', {
    headers: { 'x-should-retry': 'false' },
  });
}
