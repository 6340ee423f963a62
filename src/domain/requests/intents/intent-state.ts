import assert from 'node:assert/strict';
import type { Updateable } from 'kysely';
import type { IntentStatus } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

/** The allowed transitions. No other transition happens. */
export const transitions = {
  // A request that completes within its transaction is `processing` only inside it, invisible to other transactions.
  pending: ['processing', 'rejected', 'expired', 'dismissed'],
  processing: ['executed', 'failed'],
  executed: [],
  failed: [],
  rejected: [],
  expired: [],
  dismissed: [],
} as const satisfies Record<IntentStatus, readonly IntentStatus[]>;

/** Columns that may be set together with a transition. */
type Outcome = Pick<Updateable<Tables['intents']>, 'ended_at_ms' | 'authorization_details' | 'action_result'>;

/**
 * Moves an intent to another status if it still has the expected one.
 *
 * Result: whether it was moved; false when another transaction was faster.
 */
export async function moveIntent<From extends keyof typeof transitions>(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  id: string,
  { from, to, outcome = {} }: { from: From; to: (typeof transitions)[From][number]; outcome?: Outcome },
): Promise<boolean> {
  assert((transitions[from] as readonly IntentStatus[]).includes(to), `an intent goes from ${from} to ${to}`);
  const { numUpdatedRows } = await em
    .getKysely<Tables>()
    .updateTable('intents')
    .set({ status: to, updated_at_ms: nowMs, ...outcome })
    .where('id', '=', id)
    .where('status', '=', from)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Whether a pending intent has expired. The expiry millisecond itself is still valid, as for any request. */
function hasExpired(
  { expires_at_ms: expiresAtMs }: { readonly expires_at_ms: number },
  nowMs: number,
): boolean {
  return expiresAtMs < nowMs;
}

/** The reported status, whether or not the expiry has been stored yet. */
export function statusAt(
  intent: { readonly status: string; readonly expires_at_ms: number },
  nowMs: number,
): IntentStatus {
  return intent.status === 'pending' && hasExpired(intent, nowMs)
    ? 'expired'
    : (intent.status as IntentStatus);
}
