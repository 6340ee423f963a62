import { SigningBudgetError } from '../../../engine/authorization/signing-budget.ts';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import type { PolicyDecision } from '../../../engine/policy/evaluate.ts';
import { shortenTrace, traceLength } from '../../../engine/policy/trace-length.ts';
import type { SigningMethod, SigningMethods, SigningTask } from '../../../engine/signing/sign-with-key.ts';
import { ApiError } from '../../../errors.ts';
import { inSpan, inSyncSpan } from '../../../observability/spans.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { UseRecord } from '../../../ports/requests.ts';
import {
  type AggregationTotals,
  beginRunningTotals,
  isCounted,
  nothingCounted,
  openRunningTotals,
} from '../../access/aggregations/aggregation-totals.ts';
import {
  type Authorization,
  requireAuthorization,
  type SignedBy,
} from '../../access/owners/require-authorization.ts';
import {
  evaluatePolicies,
  type NamedPolicy,
  type PolicyEvaluation,
} from '../../access/policies/enforce-policies.ts';
import { actionToEvaluate } from '../../access/policies/policy.ts';
import { type EventContext, notePolicies, recordEvent } from '../../base/events/events.ts';
import { walletKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import type { Tables } from '../../tables.ts';
import { type FoundWallet, signersOf, type WalletRow } from '../wallets/wallet.entity.ts';
import { askUnderRecordedOwner, findWalletKey, loadKeyUseClaim } from '../wallets/wallet-keys.ts';
import { admitUses, digestOf } from './use-log.ts';

/**
 * Returns the policies that apply to a request. They depend on who authorized it: an additional signer's override
 * policies if the signer has any (possibly an empty list), else the wallet's policies.
 */
export function applicablePolicies(wallet: FoundWallet, signedBy: SignedBy): readonly NamedPolicy[] {
  if (signedBy.kind === 'signer' && signedBy.overridePolicyIds !== undefined)
    return signedBy.overridePolicyIds.map((id) => ({ id, rulesDigest: undefined }));
  // INVARIANT: a wallet's policy exists, so both columns are null or neither is.
  return wallet.policy_id === null
    ? []
    : [{ id: wallet.policy_id, rulesDigest: wallet.policy_rules_digest ?? undefined }];
}

// HOT: runs for every signature (bench `stored`, `policy`).

export interface WalletUse {
  /** The `operationId` of the request, for example `walletRpc`, `rawSignWallet` or `transferFromWallet`. */
  readonly operation: string;
  /**
   * The request body. CHOICE: it is stored in full, also in production, because replaying a draft policy needs it.
   * Signed content is personal but not secret, and no body of these operations contains a secret.
   */
  readonly request: object;
}

/** A use of a wallet after policies have evaluated it. */
interface JudgedUse extends WalletUse {
  readonly walletId: string;
  readonly method: string;
  readonly policyIds: readonly string[];
}

/**
 * CHOICE: longer bodies are not stored, and longer traces are shortened, so that a few requests cannot fill the table
 * or a response. Counted in characters.
 */
const MAX_KEPT = 256 * 1024;

/**
 * Returns decisions in the form that is returned and stored: with full traces, or with only the deciding part if the
 * traces are too long.
 */
function withBoundedTraces(decisions: readonly PolicyDecision[]): readonly PolicyDecision[] {
  const isLong = decisions.reduce((sum, { units }) => sum + traceLength(units), 0) > MAX_KEPT;
  return isLong ? decisions.map(shortenTrace) : decisions;
}

function useRecordOf(
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
 * Records the denial of a use of a wallet, and its event.
 *
 * CHOICE: `wallet.use_denied` is our own event. None of the 67 published events covers a denied request:
 * `wallet_action.*.rejected` is about a wallet action, `intent.rejected` about an intent, and an RPC request is
 * neither.
 *
 * @param decisions the result of `withBoundedTraces`, with the denying decision last.
 */
async function recordDenial(
  context: EventContext,
  record: UseRecord,
  { traceId, decisions }: { traceId: string; decisions: readonly PolicyDecision[] },
): Promise<void> {
  await recordEvent(context, {
    appId: record.appId,
    type: 'wallet.use_denied',
    payload: {
      wallet_id: record.walletId,
      operation: record.operation,
      method: record.method,
      policy_id: decisions.at(-1)?.policy_id,
      trace_id: traceId,
      request_id: record.requestId,
      denied_at: record.judgedAtMs,
    },
  });
  const trace = keptText(decisions);
  const [isKept] = await admitUses(context.em, [{ ...record, texts: [record.request, trace] }]);
  await context.em
    .getKysely<Tables>()
    .insertInto('wallet_uses')
    .values({
      app_id: record.appId,
      wallet_id: record.walletId,
      operation: record.operation,
      method: record.method,
      request_id: record.requestId,
      judged_at_ms: record.judgedAtMs,
      decision: 'denied',
      policy_ids: record.policyIds,
      request: isKept ? record.request : null,
      request_digest: isKept ? null : digestOf(record.request),
      trace_id: traceId,
      trace: isKept ? trace : null,
    })
    .execute();
}

function keptText(value: unknown): string | null {
  const text = JSON.stringify(value);
  return text.length > MAX_KEPT ? null : text;
}

/** A prepared request: the action that policies evaluate, and further data that the caller needs. */
interface PreparedUse {
  readonly action: PolicyAction;
  /** Whether the request only signs and then calls `recordOrDeny`, and changes and locks nothing before that. */
  readonly onlySigns?: boolean;
}

/** A request to use a wallet's key. */
interface UseRequest<Prepared extends PreparedUse> extends WalletUse {
  /** Builds what will be signed, if anything, and decodes its action. Called only after the caller was authorized. */
  readonly prepare: () => Promise<Prepared>;
  /** Whether an additional signer may authorize instead of the owner. */
  readonly allowsSigners: boolean;
}

/** A use of a wallet that its owner or signer has authorized and that its policies allow. */
export interface AuthorizedUse<Prepared extends PreparedUse = PreparedUse> {
  /** How the use was authorized. The evidence for the key store is derived from it. */
  readonly authorization: Authorization;
  /** The result of `prepare`. */
  readonly prepared: Prepared;
  /**
   * Records the use and its contribution to running totals. Call it in the transaction of the request, before or after
   * signing.
   *
   * @throws ApiError policy_violation if the totals no longer allow the use. Use nothing that was signed then.
   */
  readonly recordOrDeny: () => Promise<void>;
}

/**
 * Authorizes a request to use a wallet's key: verifies the owner's or a signer's signatures, then evaluates every
 * applicable policy.
 *
 * @throws ApiError what `requireAuthorization` throws; what `prepare` throws; policy_violation, which is recorded
 * although the request is rolled back. With diagnostics, its `data` contains the decision with its full trace and the
 * trace id.
 */
export async function authorizeUse<Prepared extends PreparedUse>(
  context: OperationContext,
  wallet: FoundWallet,
  { operation, request, prepare, allowsSigners }: UseRequest<Prepared>,
): Promise<AuthorizedUse<Prepared>> {
  const signers = allowsSigners ? signersOf(wallet) : [];
  const authorization = await requireAuthorization(context, { ownerId: wallet.owner_id, signers });
  const prepared = await prepare();
  const { action } = prepared;
  const totals = isCounted(action) ? await totalsFor(context, wallet, prepared) : nothingCounted;
  const policies = applicablePolicies(wallet, authorization.party);
  const evaluated = policies.length === 0 ? action : await actionToEvaluate(context, action);
  const judge = (by: Pick<AggregationTotals, 'totalOf'>) =>
    inSpan(policySpan, () => evaluatePolicies(context, policies, evaluated, by));
  const { policyIds, denial } =
    policies.length === 0 ? inSyncSpan(policySpan, () => noPolicies) : await judge(totals);
  const record = useRecordOf(context, {
    walletId: wallet.id,
    operation,
    request,
    method: action.method,
    policyIds,
  });
  if (denial !== undefined) throw denied(context, record, denial);
  notePolicies(context.notes, policyIds);
  return {
    authorization,
    prepared,
    async recordOrDeny() {
      if ('lock' in totals) {
        const locked = await totals.lock();
        const again = locked && (await judge(locked));
        if (again?.denial !== undefined) throw denied(context, record, again.denial);
        await locked?.record();
      } else {
        await totals.record();
      }
      context.afterCommit(() => context.uses.add(record), { isNote: true });
    },
  };
}

const policySpan = { name: 'policies', kind: 'internal' } as const;
const noPolicies: PolicyEvaluation = { policyIds: [], denial: undefined };

/**
 * Opens the running totals for the evaluation of a use. Usually they are locked until the transaction ends, so that no
 * other request uses up the cap.
 *
 * The exception is a use that only signs, with a key store in another process. It is evaluated twice: with
 * unlocked totals before the signature, and with locked totals after it. If the second evaluation denies, the signature
 * is not returned. With locked totals from the beginning, the whole request would have to run again after the key
 * store's response, and requests for one wallet would sign one after the other.
 */
function totalsFor(
  context: OperationContext,
  { id }: FoundWallet,
  { action, onlySigns = false }: PreparedUse,
) {
  const waits = onlySigns && context.keyStore.isLocal !== true;
  return waits ? beginRunningTotals(context, id, action) : openRunningTotals(context, id, action);
}

/** Returns the error for a denied use. Schedules the record of the denial for after the rollback of the request. */
function denied(
  { ids, nowMs, diagnostics, afterRefusal }: OperationContext,
  record: UseRecord,
  denial: readonly PolicyDecision[],
): ApiError {
  const traceId = ids.cuid2();
  const decisions = withBoundedTraces(denial);
  afterRefusal((em, notes) => recordDenial({ em, notes, ids, nowMs }, record, { traceId, decisions }));
  const data = { decision: decisions.at(-1), trace_id: traceId };
  return new ApiError('policy_violation', undefined, diagnostics ? { data } : {});
}

type KeyContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof' | 'keyStore'>;

/**
 * Signs with a wallet's key.
 *
 * @param authorization how this use of the wallet was authorized.
 * @throws SigningInputError; ApiError transaction_broadcast_failure when the request has used up its signing budget;
 * and what the key store throws.
 */
export async function signWithWalletKey<Method extends SigningMethod>(
  context: KeyContext,
  wallet: WalletRow,
  authorization: Authorization,
  task: SigningTask<Method>,
): Promise<SigningMethods[Method]['data']> {
  const { authority, ...sealed } = await findWalletKey(context, wallet);
  const claim = await loadKeyUseClaim(context, wallet, authority, authorization);
  try {
    return await askUnderRecordedOwner(context, claim, (shown) =>
      context.keyStore.signWithWallet(sealed, walletKeyBinding(wallet), task, shown),
    );
  } catch (error) {
    if (!(error instanceof SigningBudgetError)) throw error;
    throw new ApiError('transaction_broadcast_failure', error.message);
  }
}
