import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { ApiError } from '../../../errors.ts';
import { type Operations, operations } from '../../../generated/operations.ts';
import type { IntentResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { loadParties } from '../../access/owners/require-authorization.ts';
import { noteChange, recordEvent } from '../../base/events/events.ts';
import { requireAnyExpiry } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { fillTemplate } from './authorize-intent.ts';
import { findPendingForUpdate, moveIntent, reloadIntent } from './find-intent.ts';
import type { IntentRow } from './intent.entity.ts';
import { authorizationDetails, intentSummary, readIntentView } from './intent-view.ts';
import { type AnyInput, type ProposableId, proposalOf, type Subject } from './proposals.ts';

// KYSELY: see `IntentRow` in `intent.entity.ts`.

const LIFETIME_MS = 72 * 60 * 60_000;
/** The end of the year 9999, the last time that the formats of the API can express. */
const LAST_MS = 253_402_300_799_999;

/** Maps each operation that can be proposed to the operation that proposes it. */
interface ProposingOperation {
  addConditionSetItems: 'addConditionSetItemsIntent';
  createPolicyRule: 'createPolicyRuleIntent';
  deletePolicyRule: 'deletePolicyRuleIntent';
  replaceConditionSetItems: 'replaceConditionSetItemsIntent';
  transferFromWallet: 'createWalletTransferIntent';
  updateKeyQuorum: 'updateKeyQuorumIntent';
  updatePolicy: 'updatePolicyIntent';
  updatePolicyRule: 'updatePolicyRuleIntent';
  updateWallet: 'updateWalletIntent';
  walletRpc: 'createWalletRpcIntent';
}

type Proposing<Id extends ProposableId> = Operations[ProposingOperation[Id]];

/**
 * Creates an intent for a request. The intent waits for signatures of the resource's owner, or of an additional signer
 * where one is allowed. It waits for 72 hours or until the `service-request-expiry` of this request.
 *
 * @throws ApiError not_found; invalid_request for a resource without an owner; request_expired without an expiry, if
 * the app's settings require one; the errors with which the proposed operation would refuse the request, as far as they
 * do not depend on the time of execution.
 */
export async function proposeIntent<Id extends ProposableId>(
  context: OperationContext,
  operationId: Id,
  input: { path: Proposing<Id>['path']; body?: Proposing<Id>['body'] | undefined },
): Promise<Proposing<Id>['response']> {
  const given = { path: input.path as AnyInput['path'], body: input.body as unknown };
  const proposal = proposalOf(operationId);
  const subject = await proposal.hold(context, given.path);
  const { ownerId } = subject;
  if (ownerId === null) {
    throw new ApiError('invalid_request', 'the resource has no owner who could authorize the intent');
  }
  await requireAnyExpiry(context);
  await proposal.check(context, subject, given);
  const proposed = { ...given, path: proposal.pathOf(subject, given.path) };
  const signers = proposal.signers?.(subject, proposed) ?? [];
  const quorums = (await loadParties(context, { ownerId, signers })).map(({ quorum }) => quorum);
  const parties = [...new Map(quorums.map((quorum) => [quorum.id, quorum])).values()];
  const row = newRow(context, operationId, { proposed, subject });
  const details = authorizationDetails(parties, row.id, []);
  const intent = { ...row, authorization_details: JSON.stringify(details) };
  await store(
    context,
    intent,
    parties.map(({ id }) => id),
  );
  await recordEvent(context, {
    appId: context.app.id,
    type: 'intent.created',
    payload: { ...intentSummary(intent), authorization_details: details },
  });
  return (await readIntentView(context, intent)) as Proposing<Id>['response'];
}

function newRow(
  context: OperationContext,
  operationId: ProposableId,
  { proposed, subject }: { proposed: AnyInput; subject: Subject<unknown> },
): Omit<IntentRow, 'authorization_details'> {
  const { nowMs, proof } = context;
  const { intentType, resourceId } = proposalOf(operationId);
  const { method, path: template } = operations[operationId];
  const path = fillTemplate(template, proposed.path);
  const url = proof.urlOf(path);
  // Refuse a request that cannot be canonicalized for signing, with `invalid_data`.
  proof.payloadsOf({ method, path, url, body: proposed.body, expiryMs: proof.expiryMs });
  return {
    id: context.ids.cuid2(),
    app_id: context.app.id,
    intent_type: intentType,
    status: 'pending',
    operation_id: operationId,
    path_parameters: JSON.stringify(proposed.path),
    body: proposed.body === undefined ? null : JSON.stringify(proposed.body),
    url,
    subject_id: subject.id,
    resource_id: resourceId?.(proposed.path) ?? subject.id,
    created_by_id: proof.userId ?? null,
    created_at_ms: nowMs,
    updated_at_ms: nowMs,
    expires_at_ms: Math.min(proof.expiryMs ?? nowMs + LIFETIME_MS, LAST_MS),
    request_expiry_ms: proof.expiryMs ?? null,
    ended_at_ms: null,
    dismissal_reason: null,
    action_result: null,
    awaited_action_id: null,
  };
}

async function store(
  context: OperationContext,
  intent: IntentRow,
  quorumIds: readonly string[],
): Promise<void> {
  const database = context.em.getKysely<Tables>();
  await database.insertInto('intents').values(intent).execute();
  await database
    .insertInto('intent_parties')
    .values(
      quorumIds.map((quorumId, position) => ({
        intent_id: intent.id,
        key_quorum_id: quorumId,
        position,
      })),
    )
    .execute();
}

/**
 * Rejects a pending intent. This is final. Every caller who may see the intent may reject it.
 *
 * @throws ApiError not_found; invalid_state for an intent that is not pending.
 */
export async function rejectIntent(context: OperationContext, id: string): Promise<IntentResponse> {
  const intent = await findPendingForUpdate(context, id);
  const outcome = { endedAtMs: context.nowMs };
  const isMine = await moveIntent(context, intent.id, { from: 'pending', to: 'rejected', outcome });
  assert(isMine, `intent ${id} is locked, yet its status has changed`);
  const rejected = await reloadIntent(context, intent.id);
  await recordEvent(context, {
    appId: context.app.id,
    type: 'intent.rejected',
    payload: {
      ...intentSummary(rejected),
      rejected_at: context.nowMs,
    },
  });
  return readIntentView(context, rejected);
}

/** The maximum number of intents that expire in one transaction. */
export const EXPIRED_AT_ONCE = 200;

/**
 * Stores the status `expired` of pending intents that have expired, at most `EXPIRED_AT_ONCE` of them, and returns how
 * many. Views already report them as expired; the stored status is needed to filter by status.
 */
export async function expireIntents({
  em,
  notes,
  nowMs,
}: Pick<OperationContext, 'em' | 'notes' | 'nowMs'>): Promise<number> {
  // Skip a locked intent, because the holder of the lock is deciding it.
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select(['id', 'app_id'])
    // The status is a literal instead of a parameter, so that the database uses its partial index.
    .where(sql<boolean>`status = 'pending'`)
    .where('expires_at_ms', '<', nowMs)
    .orderBy('expires_at_ms')
    .orderBy('id')
    .limit(EXPIRED_AT_ONCE)
    .forUpdate()
    .skipLocked()
    .execute();
  let expired = 0;
  for (const { id, app_id: appId } of rows) {
    const outcome = { endedAtMs: nowMs };
    if (!(await moveIntent({ em, nowMs }, id, { from: 'pending', to: 'expired', outcome }))) continue;
    noteChange(notes, { appId, what: 'intent.expired', id });
    expired += 1;
  }
  return expired;
}
