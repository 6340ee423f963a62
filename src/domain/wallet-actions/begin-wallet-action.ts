import { ApiError } from '../../errors.ts';
import type { WalletActionType } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import { recordEvent } from '../events/record-event.ts';
import type { WalletActionRow } from './wallet-action-row.ts';
import { actionEvent, actionEventType } from './wallet-action-view.ts';

export interface NewWalletAction {
  readonly type: WalletActionType;
  readonly nonce: string | undefined;
  readonly referenceId: string | undefined;
  /** The type's own wire fields. */
  readonly details: object;
  readonly steps: readonly { readonly type: string; readonly transactionId: string }[];
}

/**
 * Keeps a new action with its steps and tells of it.
 *
 * @throws ApiError resource_conflict when another request was first with this nonce.
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
  // INVARIANT: a unique index over wallet and nonce lets exactly one of several concurrent requests through.
  const { numInsertedOrUpdatedRows } = await database
    .insertInto('wallet_actions')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows !== 1n) throw nonceSeen();
  await database
    .insertInto('wallet_action_steps')
    .values(
      action.steps.map(({ type, transactionId }, position) => ({
        action_id: row.id,
        position,
        type,
        transaction_id: transactionId,
      })),
    )
    .execute();
  await recordEvent(context, actionEventType(row), actionEvent(row));
  return row;
}

/**
 * Refuses a nonce that the wallet has seen before anything is asked of a chain or signed.
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
