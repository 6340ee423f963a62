import { ApiError } from '../../../errors.ts';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import type { WalletActionRow } from './wallet-action-row.ts';
import type { ExternalKind } from './wallet-action-steps.ts';
import { actionEvent, actionEventType } from './wallet-action-view.ts';

// HOT: jobs of several processes claim these rows and move them from status to status. No bench case covers it.

export interface NewWalletAction {
  readonly type: WalletActionType;
  readonly nonce: string | undefined;
  readonly referenceId: string | undefined;
  /** The type's own wire fields. */
  readonly details: object;
  /** What the type's outcome is computed from and no response shows. Integers as decimal text. */
  readonly terms?: object | undefined;
  readonly steps: readonly (NewTransactionStep | NewExternalStep)[];
}

/** A transaction that is signed and stored. */
export interface NewTransactionStep {
  /** The contract's name of its kind. */
  readonly type: string;
  readonly transactionId: string;
  /** Whether the outcome depends on what it moves: it is read before the action ends. */
  readonly readsEffects?: boolean | undefined;
}

/** A step that another system does after the deposit, which is the previous step. */
export interface NewExternalStep {
  readonly type: 'external_transaction';
  readonly kind: ExternalKind;
  /** Its id there, by which `follow-external-steps` asks about it. */
  readonly externalId: string;
  /** The chain of the payment; null for a payment by a bank. */
  readonly caip2: string | null;
  /** The wire fields of the action that change when it is done. */
  readonly delivery: object;
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
    terms: action.terms === undefined ? null : JSON.stringify(action.terms),
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
        ...('externalId' in step
          ? externalColumns(step, context.nowMs)
          : transactionColumns(step, context.nowMs)),
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

const transactionColumns = ({ transactionId, readsEffects }: NewTransactionStep, nowMs: number) => ({
  transaction_id: transactionId,
  ...{ external_kind: null, external_id: null, external_status: null, caip2: null, delivery: null },
  next_check_at_ms: readsEffects === true ? nowMs : null,
});

const externalColumns = ({ kind, externalId, caip2, delivery }: NewExternalStep, nowMs: number) => ({
  transaction_id: null,
  ...{ external_kind: kind, external_id: externalId, external_status: 'waiting' },
  ...{ caip2, delivery: JSON.stringify(delivery) },
  next_check_at_ms: nowMs,
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
