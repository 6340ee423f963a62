import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { EligibleParty } from '../../authorization/require-owner.ts';
import { ApiError } from '../../errors.ts';
import { type OperationId, operations } from '../../generated/operations.ts';
import type { IntentActionResult } from '../../generated/schemas.ts';
import type { Agreement, OperationContext } from '../../services.ts';
import { recordEvent } from '../events/record-event.ts';
import type { IntentRow } from './intent-row.ts';
import { moveIntent } from './intent-state.ts';
import { intentSummary } from './intent-view.ts';
import type { Subject } from './proposal.ts';
import type { AnyInput, AnyProposal } from './proposals.ts';

/** An intent that has been agreed to, held until the transaction ends. */
export interface AgreedIntent {
  readonly intent: IntentRow;
  readonly proposal: AnyProposal;
  readonly subject: Subject<unknown>;
  readonly input: AnyInput;
  /** Whose agreement sufficed. */
  readonly party: EligibleParty;
  readonly agreement: Agreement;
}

/**
 * Carries out a proposed request by the verb of the direct operation, which judges the agreement once more and
 * evaluates the policies now. A refusal undoes what the verb did and is the intent's result.
 *
 * INVARIANT: the decision, the change and its result are committed together, so that a crash leaves all or nothing of
 * them and nothing is ever done twice.
 */
export async function carryOut(context: OperationContext, agreed: AgreedIntent): Promise<void> {
  const { intent, proposal, subject, input, party } = agreed;
  const priorState = await proposal.priorState?.(context, subject, input.path);
  const isMine = await moveIntent(context, intent.id, { from: 'pending', to: 'processing' });
  assert(isMine, `intent ${intent.id} is held and was decided by somebody else`);
  const later: (() => Promise<void>)[] = [];
  const outcome = await attempt(context, agreed, later);
  const result: IntentActionResult = {
    ...outcome,
    executed_at: context.nowMs,
    authorized_by_id: party.quorum.id,
    ...(party.quorum.displayName === null ? {} : { authorized_by_display_name: party.quorum.displayName }),
    ...(priorState === undefined ? {} : { prior_state: priorState }),
  };
  await settle(context, intent, result);
  // TODO(#9): what goes out into the world settles the intent after the commit.
  for (const work of later) context.afterCommit(work);
}

type Outcome = Pick<IntentActionResult, 'status_code' | 'response_body'>;

async function attempt(
  context: OperationContext,
  { intent, proposal, input, agreement }: AgreedIntent,
  later: (() => Promise<void>)[],
): Promise<Outcome> {
  const proof = {
    ...context.proof,
    signatures: [],
    expiryMs: undefined,
    userId: undefined,
    agreed: agreement,
  };
  try {
    // A savepoint: a refusal undoes what the verb has done, and nothing else.
    const body = await context.em.transactional((em) =>
      proposal.run(
        { ...context, em: em as SqlEntityManager, proof, afterCommit: (work) => void later.push(work) },
        input,
      ),
    );
    const { successStatus } = operations[intent.operation_id as OperationId];
    return { status_code: successStatus, response_body: body };
  } catch (error) {
    // A fault of ours is not the intent's: everything is undone, and the member can sign again.
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    later.length = 0;
    return { status_code: error.status, response_body: error.toBody() };
  }
}

async function settle(
  context: OperationContext,
  intent: IntentRow,
  result: IntentActionResult,
): Promise<void> {
  const status = result.status_code < 400 ? 'executed' : 'failed';
  const outcome = { action_result: JSON.stringify(result) };
  const isSettled = await moveIntent(context, intent.id, { from: 'processing', to: status, outcome });
  assert(isSettled, `intent ${intent.id} was settled by somebody else`);
  await recordEvent(context, `intent.${status}`, {
    ...intentSummary({ ...intent, status }),
    action_result: result,
  });
}
