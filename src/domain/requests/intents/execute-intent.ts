import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { ApiError } from '../../../errors.ts';
import { type OperationId, operations } from '../../../generated/operations.ts';
import type { IntentActionResult } from '../../../generated/schemas.ts';
import type {
  AfterCommitWork,
  Agreement,
  OperationContext,
  Planned,
} from '../../../ports/operation-context.ts';
import type { EligibleParty } from '../../access/owners/require-authorization.ts';
import { recordEvent } from '../../base/events/events.ts';
import type { EndedAction } from '../../money/wallet-actions/finish-wallet-actions.ts';
import { inSavepoint } from '../../savepoint.ts';
import type { Tables } from '../../tables.ts';
import { moveIntent } from './find-intent.ts';
import { IntentEntity, type IntentRow, intentColumns } from './intent.entity.ts';
import { intentSummary } from './intent-view.ts';
import type { AnyInput, AnyProposal, Subject } from './proposals.ts';

// KYSELY: see `IntentRow` in `intent.entity.ts`.

const settledEvents = { executed: 'intent.executed', failed: 'intent.failed' } as const;

/**
 * Stores the outcome of an intent in `processing` and records its event. Returns false when the intent was already
 * settled.
 */
async function settleIntent(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>,
  intent: IntentRow,
  result: IntentActionResult,
): Promise<boolean> {
  const status = result.status_code < 400 ? 'executed' : 'failed';
  const outcome = { actionResult: JSON.stringify(result) };
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
 * Settles the intent that started a wallet action, if any, with the action's outcome. Call it in the transaction that
 * settles the action.
 *
 * CHOICE: for a failed action, `response_body` is the error that a chain's refusal would have produced, as for every
 * failed intent. Its `data` names the action.
 */
export async function settleIntentOfAction(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>,
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

/** The maximum number of intents that are settled in one transaction. */
export const SETTLED_AT_ONCE = 50;
/**
 * CHOICE: an intent that has been in `processing` for this time was interrupted: its process has died, even if no other
 * process has noticed.
 */
const INTERRUPTED_AFTER_MS = 60_000;

/**
 * Settles intents that a crash after the commit left in `processing`. Their changes are committed, and pending external
 * work, such as broadcasts, has its own job. So they are settled with their stored result.
 *
 * @param deadProcess if given, settles only the intents that this dead process was executing, even if it began
 * recently.
 * @returns how many intents it settled.
 */
export async function settleInterruptedIntents(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>,
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

/** An intent with enough signatures to be executed, locked until the transaction ends. */
interface AgreedIntent {
  readonly intent: IntentRow;
  readonly proposal: AnyProposal;
  readonly subject: Subject<unknown>;
  readonly input: AnyInput;
  /** The key quorum whose threshold was reached. */
  readonly party: EligibleParty;
  readonly agreement: Agreement;
  /** The plan of the proposed operation. */
  readonly planned: Planned<unknown>;
}

/**
 * Executes a proposed request through the verb of the direct operation. The verb checks the signatures again and
 * evaluates the current policies. A refusal rolls back the verb's work and becomes the intent's result.
 *
 * INVARIANT: the decision, the change and the result are committed together. A crash leaves all or none of them, and
 * nothing is executed twice.
 */
export async function executeIntent(context: OperationContext, agreed: AgreedIntent): Promise<void> {
  const { intent, proposal, subject, input, party } = agreed;
  const priorState = await proposal.priorState?.(context, subject, input.path);
  const isMine = await moveIntent(context, intent.id, { from: 'pending', to: 'processing' });
  assert(isMine, `intent ${intent.id} is locked, yet its status has changed`);
  const later: Work[] = [];
  const outcome = await attempt(context, agreed, later);
  const result: IntentActionResult = {
    ...outcome,
    executed_at: context.nowMs,
    authorized_by_id: party.quorum.id,
    ...(party.quorum.displayName === null ? {} : { authorized_by_display_name: party.quorum.displayName }),
    ...(priorState === undefined ? {} : { prior_state: priorState }),
  };
  const hasSucceeded = outcome.status_code < 400;
  const actionId = hasSucceeded ? proposal.actionOf?.(outcome.response_body) : undefined;
  if (actionId !== undefined) {
    // The job that settles the action also settles the intent, even if this process dies.
    await keepResult(context, intent.id, result, actionId);
    for (const work of later) context.afterCommit(work);
    return;
  }
  if (later.length === 0) return void (await settleIntent(context, intent, result));
  await keepResult(context, intent.id, result);
  context.afterCommit(() => runAfterCommit(context, intent, { result, later }));
}

type Work = AfterCommitWork;
type Outcome = Pick<IntentActionResult, 'status_code' | 'response_body'>;

async function attempt(
  context: OperationContext,
  { intent, proposal, input, agreement, planned }: AgreedIntent,
  later: Work[],
): Promise<Outcome> {
  const notes: Work[] = [];
  const refusalWorks: Parameters<OperationContext['afterRefusal']>[0][] = [];
  const afterCommit: OperationContext['afterCommit'] = (work, { isNote = false } = {}) =>
    void (isNote ? notes : later).push(work);
  const afterRefusal: OperationContext['afterRefusal'] = (work) => void refusalWorks.push(work);
  const proof = {
    ...context.proof,
    signatures: [],
    expiryMs: undefined,
    userId: undefined,
    agreement,
  };
  try {
    // A refusal rolls back only the verb's work.
    const body = await inSavepoint(context, (em, notes) =>
      proposal.run({ ...context, em, notes, proof, afterCommit, afterRefusal }, input, planned),
    );
    for (const note of notes) context.afterCommit(note, { isNote: true });
    const { successStatus } = operations[intent.operation_id as OperationId];
    return { status_code: successStatus, response_body: body };
  } catch (error) {
    later.length = 0;
    const refusal = refusalOf(error);
    // Store records that must survive the rollback, such as the trace of a denial.
    for (const work of refusalWorks) await work(context.em, context.notes);
    return refusal;
  }
}

/**
 * Stores the result with which the intent is settled unless a chain or a service refuses later. A crash also leads to
 * this result.
 */
async function keepResult(
  { em, processId }: OperationContext,
  id: string,
  result: IntentActionResult,
  awaitedActionId: string | null = null,
): Promise<void> {
  await em.nativeUpdate(
    IntentEntity,
    { id },
    { actionResult: JSON.stringify(result), awaitedActionId, claimedBy: processId },
  );
}

/**
 * Runs the verb's work after the commit, such as a broadcast, and settles the intent with the outcome. After an
 * internal error, the intent stays in `processing` until `settleInterruptedIntents` settles it.
 */
async function runAfterCommit(
  context: OperationContext,
  intent: IntentRow,
  { result, later }: { result: IntentActionResult; later: readonly Work[] },
): Promise<void> {
  let outcome: Outcome = result;
  try {
    for (const work of later) await work();
  } catch (error) {
    outcome = refusalOf(error);
  }
  await context.inUnit((em, notes) =>
    settleIntent({ ...context, em, notes }, intent, { ...result, ...outcome }),
  );
}

/** Returns the outcome of an intent whose request was refused. Rethrows internal errors, which are not outcomes. */
function refusalOf(error: unknown): Outcome {
  if (!(error instanceof ApiError) || error.status >= 500) throw error;
  return { status_code: error.status, response_body: error.toBody() };
}
