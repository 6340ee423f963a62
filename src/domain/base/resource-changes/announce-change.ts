import { sql } from 'kysely';
import type { OperationContext } from '../../../operation-context.ts';
import { prepareQuery } from '../../prepared-query.ts';

/** What a resource with an owner can go through. */
export interface ResourceChange {
  readonly resource: 'wallet' | 'policy' | 'key quorum' | 'condition set';
  readonly id: string;
  readonly change: 'changed' | 'deleted' | 'archived';
}

interface Dismissal {
  readonly subjectId: string;
  readonly reason: string;
  readonly nowMs: number;
}

// INVARIANT: the one transition of an intent that is made outside of intents/: pending -> dismissed. One whose time is
// over has expired, even if nobody has written that down yet. The status is no value, so that its index is used.
const dismissPending = prepareQuery<Dismissal>((database, { subjectId, reason, nowMs }) =>
  database
    .updateTable('intents')
    .set({ status: 'dismissed', dismissal_reason: reason, ended_at_ms: nowMs, updated_at_ms: nowMs })
    .where('subject_id', '=', subjectId)
    .where(sql<boolean>`status = 'pending'`)
    .where('expires_at_ms', '>=', nowMs),
);

/**
 * Ends what has been proposed about a resource, because the resource is not any more what the members looked at when
 * they signed. Called by every verb that changes or deletes a resource with an owner, in the transaction of the change.
 *
 * NOTE: it stands apart from the intents, which call those verbs.
 */
export async function announceChange(
  { em, nowMs, proof }: Pick<OperationContext, 'em' | 'nowMs' | 'proof'>,
  { resource, id, change }: ResourceChange,
): Promise<void> {
  const by = proof.agreed === undefined ? '' : ` by the intent \`${proof.agreed.intentId}\``;
  await dismissPending(em, { subjectId: id, reason: `The ${resource} was ${change}${by}.`, nowMs });
}
