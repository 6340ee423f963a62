import assert from 'node:assert/strict';
import { ApiError } from '../../../errors.ts';
import { type OperationId, operations } from '../../../generated/operations.ts';
import type { IntentActionResult } from '../../../generated/schemas.ts';
import type { AfterCommitWork, Agreement, OperationContext } from '../../../operation-context.ts';
import type { Planned } from '../../../planned.ts';
import { inSavepoint } from '../../../storage/savepoint.ts';
import { nothingNoted } from '../../access/owners/request-evidence.ts';
import type { EligibleParty } from '../../access/owners/require-owner.ts';
import type { Tables } from '../../tables.ts';
import type { IntentRow } from './intent-row.ts';
import { moveIntent } from './intent-state.ts';
import type { Subject } from './proposal.ts';
import type { AnyInput, AnyProposal } from './proposals.ts';
import { settleIntent } from './settle-intent.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

/** An intent with enough signatures, locked until the transaction ends. */
export interface AgreedIntent {
  readonly intent: IntentRow;
  readonly proposal: AnyProposal;
  readonly subject: Subject<unknown>;
  readonly input: AnyInput;
  /** The key quorum whose threshold was reached. */
  readonly party: EligibleParty;
  readonly agreement: Agreement;
  /** The result of the proposal's preparation. */
  readonly planned: Planned<unknown>;
}

/**
 * Executes a proposed request through the verb of the direct operation, which checks the signatures again and
 * evaluates the policies as they are now. A refusal rolls back the verb's work and becomes the intent's result.
 *
 * INVARIANT: the decision, the change and its result are committed together, so a crash leaves all or none of them
 * and nothing is executed twice.
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
    ...nothingNoted,
    signatures: [],
    expiryMs: undefined,
    userId: undefined,
    agreed: agreement,
  };
  try {
    // A refusal rolls back only the verb's work.
    const body = await inSavepoint(context.em, (em) =>
      proposal.run({ ...context, em, proof, afterCommit, afterRefusal }, input, planned),
    );
    for (const note of notes) context.afterCommit(note, { isNote: true });
    const { successStatus } = operations[intent.operation_id as OperationId];
    return { status_code: successStatus, response_body: body };
  } catch (error) {
    later.length = 0;
    const refusal = refusalOf(error);
    // Records that must survive the rollback, such as the trace of a denial.
    for (const work of refusalWorks) await work(context.em);
    return refusal;
  }
}

/** Stores the result that holds unless a chain or service refuses. After a crash, the intent is settled with it. */
async function keepResult(
  { em, processId }: OperationContext,
  id: string,
  result: IntentActionResult,
  awaitedActionId: string | null = null,
): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('intents')
    .set({ action_result: JSON.stringify(result), awaited_action_id: awaitedActionId, claimed_by: processId })
    .where('id', '=', id)
    .execute();
}

/**
 * Runs the verb's after-commit work, such as a broadcast, and settles the intent with its outcome. On an internal
 * error the intent stays `processing` for `settleInterruptedIntents`.
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
  await context.inUnit((em) => settleIntent({ ...context, em }, intent, { ...result, ...outcome }));
}

/** The outcome of an intent whose request was refused. Internal errors are not outcomes and are rethrown. */
function refusalOf(error: unknown): Outcome {
  if (!(error instanceof ApiError) || error.status >= 500) throw error;
  return { status_code: error.status, response_body: error.toBody() };
}
