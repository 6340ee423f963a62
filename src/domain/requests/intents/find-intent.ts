import assert from 'node:assert/strict';
import { ApiError, notFound } from '../../../errors.ts';
import type { IntentStatus } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { membershipsOf } from '../../access/key-quorums/find-key-quorum.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { IntentEntity, type IntentRow, intentColumns } from './intent.entity.ts';

// KYSELY: see `IntentRow` in `intent.entity.ts`.

/** The allowed transitions between statuses. */
const transitions = {
  // A request that completes within its transaction is `processing` only inside that transaction, so no other
  // transaction sees this status.
  pending: ['processing', 'rejected', 'expired', 'dismissed'],
  processing: ['executed', 'failed'],
  executed: [],
  failed: [],
  rejected: [],
  expired: [],
  dismissed: [],
} as const satisfies Record<IntentStatus, readonly IntentStatus[]>;

/** The columns that are set together with a status. */
interface Outcome {
  readonly endedAtMs?: number;
  readonly authorizationDetails?: string;
  readonly actionResult?: string;
}

/** Moves an intent to another status if it still has the expected one. Returns false if it no longer has it. */
export async function moveIntent<From extends keyof typeof transitions>(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  id: string,
  { from, to, outcome = {} }: { from: From; to: (typeof transitions)[From][number]; outcome?: Outcome },
): Promise<boolean> {
  assert((transitions[from] as readonly IntentStatus[]).includes(to), `an intent goes from ${from} to ${to}`);
  const moved = await em.nativeUpdate(
    IntentEntity,
    { id, status: from },
    { status: to, updatedAtMs: nowMs, ...outcome },
  );
  return moved === 1;
}

/**
 * Returns whether a pending intent has expired. As for any request, the millisecond of the expiry itself is still
 * valid.
 */
function hasExpired(
  { expires_at_ms: expiresAtMs }: { readonly expires_at_ms: number },
  nowMs: number,
): boolean {
  return expiresAtMs < nowMs;
}

/** Returns the status to report: an expired intent is `expired` even if it is still stored as pending. */
export function statusAt(
  intent: { readonly status: string; readonly expires_at_ms: number },
  nowMs: number,
): IntentStatus {
  return intent.status === 'pending' && hasExpired(intent, nowMs)
    ? 'expired'
    : (intent.status as IntentStatus);
}

type FindContext = Pick<OperationContext, 'app' | 'em' | 'proof'>;

/**
 * Selects the app's intents that the caller may see: all of them with the app secret, and with a user token the intents
 * that the user created or can sign.
 */
export function visibleIntents({ app, em, proof: { userId } }: FindContext) {
  const database = em.getKysely<Tables>();
  const ofApp = database.selectFrom('intents').select(intentColumns).where('app_id', '=', app.id);
  if (userId === undefined) return ofApp;
  return ofApp.where(({ eb, or }) =>
    or([
      eb('created_by_id', '=', userId),
      eb(
        'id',
        'in',
        database
          .selectFrom('intent_parties')
          .select('intent_id')
          .where('key_quorum_id', 'in', membershipsOf(database, { kind: 'user', member: userId })),
      ),
    ]),
  );
}

/**
 * Finds an intent that the caller may see.
 *
 * @throws ApiError not_found
 */
export async function findIntent(context: FindContext, id: string): Promise<IntentRow> {
  const row = await visibleIntents(context).where('id', '=', lookupKey(id)).executeTakeFirst();
  if (row === undefined) throw notFound('Intent');
  return row;
}

/** Reads the current state of an intent. The caller has already checked that the client may see it. */
export function reloadIntent({ em }: Pick<OperationContext, 'em'>, id: string): Promise<IntentRow> {
  return em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select(intentColumns)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
}

/**
 * Finds a pending intent, and locks it until the transaction ends.
 *
 * @throws ApiError not_found; invalid_state for an intent that is not pending.
 */
export async function findPendingForUpdate(
  context: FindContext & Pick<OperationContext, 'nowMs'>,
  id: string,
): Promise<IntentRow> {
  await context.em.findOne(
    IntentEntity,
    { id: lookupKey(id) },
    { fields: ['id'], disableIdentityMap: true, ...lockForUpdate },
  );
  const row = await findIntent(context, id);
  const status = statusAt(row, context.nowMs);
  if (status !== 'pending') {
    throw new ApiError('invalid_state', `the intent cannot be authorized or rejected: it is ${status}`);
  }
  return row;
}
