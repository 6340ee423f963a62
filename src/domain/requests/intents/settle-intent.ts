import { sql } from 'kysely';
import { ApiError } from '../../../errors.ts';
import type { IntentActionResult } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { EndedAction } from '../../money/wallet-actions/finish-wallet-actions.ts';
import type { Tables } from '../../tables.ts';
import { type IntentRow, intentColumns } from './intent-row.ts';
import { moveIntent } from './intent-state.ts';
import { intentSummary } from './intent-view.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

const settledEvents = { executed: 'intent.executed', failed: 'intent.failed' } as const;

/**
 * Stores the outcome of an intent in `processing` and records its event.
 *
 * Result: false when the intent was already settled.
 */
export async function settleIntent(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  intent: IntentRow,
  result: IntentActionResult,
): Promise<boolean> {
  const status = result.status_code < 400 ? 'executed' : 'failed';
  const outcome = { action_result: JSON.stringify(result) };
  const isMine = await moveIntent(context, intent.id, { from: 'processing', to: status, outcome });
  if (isMine) {
    await recordEvent(context, {
      appId: intent.app_id,
      type: settledEvents[status],
      payload: {
        ...intentSummary({ ...intent, status }),
        action_result: result,
      },
    });
  }
  return isMine;
}

/**
 * Settles the intent that started a wallet action, if there is one, with the action's outcome. Call it in the
 * transaction that settles the action.
 *
 * CHOICE: for a failed action, `response_body` is the error that a chain's refusal would have produced, as for every
 * failed intent; its `data` names the action.
 */
export async function settleIntentOfAction(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  { id, view, failure }: EndedAction,
): Promise<void> {
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select(intentColumns)
    .where('awaited_action_id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return;
  const kept = JSON.parse(row.action_result ?? '{}') as IntentActionResult;
  const refusal =
    failure === undefined
      ? undefined
      : new ApiError('transaction_execution_failure', failure, { data: { wallet_action_id: id } });
  await settleIntent(context, row, {
    ...kept,
    ...(refusal === undefined
      ? { response_body: view }
      : { status_code: refusal.status, response_body: refusal.toBody() }),
  });
}

/** Intents settled in one transaction. */
export const SETTLED_AT_ONCE = 50;
/** CHOICE: after this time, the process that executed it has either settled it or died, even if no other process has noticed. */
const INTERRUPTED_AFTER_MS = 60_000;

/**
 * Settles intents left in `processing` by a crash after their commit. Their changes are committed, and pending
 * external work, such as broadcasts, has its own job, so they only need their stored result.
 *
 * @param deadProcess settles those that this process was executing when it ended, instead of those that have waited long.
 * @returns how many.
 */
export async function settleInterruptedIntents(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  deadProcess?: string,
): Promise<number> {
  const rows = await context.em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select(intentColumns)
    .where(sql<boolean>`status = 'processing'`)
    .where('awaited_action_id', 'is', null)
    .where((where) =>
      deadProcess === undefined
        ? where('updated_at_ms', '<', context.nowMs - INTERRUPTED_AFTER_MS)
        : where('claimed_by', '=', deadProcess),
    )
    .orderBy('updated_at_ms')
    .orderBy('id')
    .limit(SETTLED_AT_ONCE)
    .forUpdate()
    .skipLocked()
    .execute();
  let settled = 0;
  for (const row of rows) {
    if (row.action_result === null) continue;
    const result = JSON.parse(row.action_result) as IntentActionResult;
    if (await settleIntent(context, row, result)) settled += 1;
  }
  return settled;
}
