import type { OperationContext } from '../../../operation-context.ts';
import type { PolicyDecision } from '../../../policy/evaluate.ts';
import { shortenTrace, traceLength } from '../../../policy/trace-length.ts';
import type { UseRecord } from '../../../ports/use-log.ts';
import { type EventContext, recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { admitUses, digestOf } from './use-volume.ts';

// HOT: runs for every signature (bench `stored`, `policy`).

/** A request to use a wallet. */
export interface WalletUse {
  /** The operation by its id: `walletRpc`, `rawSignWallet`, `exportWallet`, `transferFromWallet`. */
  readonly operation: string;
  /**
   * The request body. CHOICE: stored in full, also in production: signed content is personal but not secret, and
   * replaying a draft policy needs it. No body of these operations contains a secret.
   */
  readonly request: object;
}

/** A use that policies have evaluated. */
export interface JudgedUse extends WalletUse {
  readonly walletId: string;
  readonly method: string;
  readonly policyIds: readonly string[];
}

/**
 * CHOICE: larger bodies are not stored and longer traces are shortened, so that a few requests cannot fill the table
 * or a response. In characters.
 */
const MAX_KEPT = 256 * 1024;

/** Decisions as returned and stored: with full traces, or with only the deciding part of traces that are too long. */
export function withBoundedTraces(decisions: readonly PolicyDecision[]): readonly PolicyDecision[] {
  const isLong = decisions.reduce((sum, { units }) => sum + traceLength(units), 0) > MAX_KEPT;
  return isLong ? decisions.map(shortenTrace) : decisions;
}

/** The record of an evaluated use. */
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
 * Records the denial of a use of a wallet and its event. `decisions`: from `withBoundedTraces`, the denying one last.
 *
 * CHOICE: `wallet.use_denied` is our own event. None of the 67 published events covers a denied request:
 * `wallet_action.*.rejected` is about a wallet action, `intent.rejected` about an intent, and an rpc request is
 * neither.
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
  const trace = keptText(decisions);
  const [isKept] = await admitUses(context.em, [{ ...use, texts: [use.request, trace] }]);
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
      request: isKept ? use.request : null,
      request_digest: isKept ? null : digestOf(use.request),
      trace_id: traceId,
      trace: isKept ? trace : null,
    })
    .execute();
}

function keptText(value: unknown): string | null {
  const text = JSON.stringify(value);
  return text.length > MAX_KEPT ? null : text;
}
