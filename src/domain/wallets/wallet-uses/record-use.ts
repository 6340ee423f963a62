import type { OperationContext } from '../../../operation-context.ts';
import type { PolicyDecision } from '../../../policy/evaluate.ts';
import { shortenTrace, traceLength } from '../../../policy/trace-length.ts';
import type { UseRecord } from '../../../ports/use-log.ts';
import { type EventContext, recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';

/** A request that asks for the use of a wallet. */
export interface WalletUse {
  /** The operation by its id: `walletRpc`, `rawSignWallet`, `exportWallet`, `transferFromWallet`. */
  readonly operation: string;
  /**
   * Its body as given. CHOICE: kept as it stands, in production too: what is signed is personal but no secret, and a
   * draft policy can be judged by nothing less. No body of these operations holds a secret.
   */
  readonly request: object;
}

/** A use that policies have judged. */
export interface JudgedUse extends WalletUse {
  readonly walletId: string;
  readonly method: string;
  readonly policyIds: readonly string[];
}

/**
 * CHOICE: larger bodies are not kept and longer traces are shortened, so that nobody fills the table, or an answer,
 * with a few requests. Characters.
 */
const MAX_KEPT = 256 * 1024;

/** Decisions as they are answered and stored: with their whole traces, or with what decides where those are too long. */
export function withBoundedTraces(decisions: readonly PolicyDecision[]): readonly PolicyDecision[] {
  const isLong = decisions.reduce((sum, { units }) => sum + traceLength(units), 0) > MAX_KEPT;
  return isLong ? decisions.map(shortenTrace) : decisions;
}

/** A judged use as it is recorded. */
export function useRecordOf(
  { app, requestId, nowMs }: Pick<OperationContext, 'app' | 'requestId' | 'nowMs'>,
  { walletId, operation, method, policyIds, request }: JudgedUse,
): UseRecord {
  return {
    appId: app.id,
    walletId,
    operation,
    method,
    requestId,
    judgedAtMs: nowMs,
    policyIds: policyIds.length === 0 ? '[]' : JSON.stringify(policyIds),
    request: keptText(request),
  };
}

/**
 * Records that a policy denied the use of a wallet, with its event. `decisions` led to it, the denying one last, from
 * `withBoundedTraces`.
 *
 * CHOICE: `wallet.use_denied` is an event of our own. None of the 67 published ones tells of a denied request:
 * `wallet_action.*.rejected` names a wallet action, `intent.rejected` an intent, and an rpc request is neither.
 */
export async function recordDenial(
  context: EventContext,
  use: UseRecord,
  { traceId, decisions }: { traceId: string; decisions: readonly PolicyDecision[] },
): Promise<void> {
  await recordEvent(context, {
    appId: use.appId,
    type: 'wallet.use_denied',
    payload: {
      wallet_id: use.walletId,
      operation: use.operation,
      method: use.method,
      policy_id: decisions.at(-1)?.policy_id,
      trace_id: traceId,
      request_id: use.requestId,
      denied_at: use.judgedAtMs,
    },
  });
  await context.em
    .getKysely<Tables>()
    .insertInto('wallet_uses')
    .values({
      app_id: use.appId,
      wallet_id: use.walletId,
      operation: use.operation,
      method: use.method,
      request_id: use.requestId,
      judged_at_ms: use.judgedAtMs,
      decision: 'denied',
      policy_ids: use.policyIds,
      request: use.request,
      trace_id: traceId,
      trace: keptText(decisions),
    })
    .execute();
}

function keptText(value: unknown): string | null {
  const text = JSON.stringify(value);
  return text.length > MAX_KEPT ? null : text;
}
