import { sql } from 'kysely';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { prepareQuery } from '../../prepared-query.ts';

// KYSELY: one statement dismisses any number of intents. Their entity belongs to a higher layer.

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

// INVARIANT: this is the only transition of an intent outside `intents/`: from pending to dismissed. It leaves expired
// intents alone, even if they are still stored as pending. The status is a literal instead of a parameter, so that the
// database uses its partial index.
const dismissPending = prepareQuery<Dismissal>((database, { subjectId, reason, nowMs }) =>
  database
    .updateTable('intents')
    .set({ status: 'dismissed', dismissal_reason: reason, ended_at_ms: nowMs, updated_at_ms: nowMs })
    .where('subject_id', '=', subjectId)
    .where(sql<boolean>`status = 'pending'`)
    .where('expires_at_ms', '>=', nowMs),
);

/**
 * Dismisses the pending intents about a resource, because the resource is no longer what their signers saw. Every verb
 * that changes or deletes a resource of one of these kinds calls it in the transaction of the change.
 *
 * NOTE: it is not part of the noun `intents`, because that noun calls those verbs.
 */
export async function dismissIntentsAbout(
  { em, nowMs, proof }: Pick<OperationContext, 'em' | 'nowMs' | 'proof'>,
  { resource, id, change }: ResourceChange,
): Promise<void> {
  const by = proof.agreement === undefined ? '' : ` by the intent \`${proof.agreement.intentId}\``;
  await dismissPending(em, { subjectId: id, reason: `The ${resource} was ${change}${by}.`, nowMs });
}
