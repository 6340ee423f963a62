import { ApiError } from '../../../errors.ts';
import type { WalletAdditionalSigner } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import type { PolicyDecision } from '../../../policy/evaluate.ts';
import type { UseRecord } from '../../../ports/use-log.ts';
import { inSpan, inSyncSpan } from '../../../spans.ts';
import {
  beginRunningTotals,
  isCounted,
  nothingCounted,
  openRunningTotals,
  type RunningTotals,
} from '../../access/aggregations/running-totals.ts';
import { noteSigner } from '../../access/owners/request-evidence.ts';
import { type AdditionalSigner, requireOwner } from '../../access/owners/require-owner.ts';
import { evaluatePolicies, type PolicyEvaluation } from '../../access/policies/enforce-policies.ts';
import { actionToEvaluate } from '../../access/policies/strict-methods.ts';
import { notePolicies } from '../../base/events/stored-effects.ts';
import type { FoundWallet, WalletRow } from '../wallets/wallet-row.ts';
import { applicablePolicies } from './applicable-policies.ts';
import { recordDenial, useRecordOf, type WalletUse, withBoundedTraces } from './record-use.ts';

/** A decoded request: the action that policies evaluate, and whatever else the caller needs. */
export interface DecodedUse {
  readonly action: PolicyAction;
  /** It signs and then calls `record`, and changes or locks nothing before. */
  readonly onlySigns?: boolean;
}

/** A request to use a wallet's key. */
export interface UseRequest<Decoded extends DecodedUse> extends WalletUse {
  /** Reads the action from the bytes to be signed; not called for callers who may not act for the wallet. */
  readonly decode: () => Decoded | Promise<Decoded>;
  /** Whether an additional signer may authorize in place of the owner. */
  readonly mayBeSigner: boolean;
}

/** A use that was allowed. */
export interface AllowedUse<Decoded extends DecodedUse> {
  /** What `decode` returned. */
  readonly decoded: Decoded;
  /** Records the use and its contribution to running totals. Call it in the signing transaction, after signing. */
  readonly record: () => Promise<void>;
}

/**
 * Authorizes a request to use a wallet's key: verifies the owner's or a signer's signatures, then evaluates every
 * applicable policy.
 *
 * @throws ApiError the codes of `requireOwner`; what `decode` throws; policy_violation, which is recorded although
 * the request is rolled back. With diagnostics, its `data` contains the decision with its full trace and the trace
 * id.
 */
export async function authorizeUse<Decoded extends DecodedUse>(
  context: OperationContext,
  wallet: FoundWallet,
  { operation, request, decode, mayBeSigner }: UseRequest<Decoded>,
): Promise<AllowedUse<Decoded>> {
  const signers = mayBeSigner ? signersOf(wallet) : [];
  const required = requireOwner(context, { ownerId: wallet.owner_id, signers });
  const signedBy = 'kind' in required ? required : await required;
  noteSigner(context.proof, signedBy.kind === 'signer' ? signedBy.signerId : undefined);
  const decoded = await decode();
  const { action } = decoded;
  const totals = isCounted(action) ? await totalsFor(context, wallet, decoded) : nothingCounted;
  const policies = applicablePolicies(wallet, signedBy);
  const evaluated = policies.length === 0 ? action : await actionToEvaluate(context, action);
  const judge = (by: Pick<RunningTotals, 'totalOf'>) =>
    inSpan(policySpan, () => evaluatePolicies(context, policies, evaluated, by));
  const { policyIds, denial } =
    policies.length === 0 ? inSyncSpan(policySpan, () => noPolicies) : await judge(totals);
  const use = useRecordOf(context, {
    walletId: wallet.id,
    operation,
    request,
    method: action.method,
    policyIds,
  });
  if (denial !== undefined) throw denied(context, use, denial);
  notePolicies(context.em, policyIds);
  return {
    decoded,
    async record() {
      if ('lock' in totals) {
        const locked = await totals.lock();
        const again = locked && (await judge(locked));
        if (again?.denial !== undefined) throw denied(context, use, again.denial);
        await locked?.record();
      } else {
        await totals.record();
      }
      context.afterCommit(() => context.uses.add(use), { isNote: true });
    },
  };
}

const policySpan = { name: 'policies', kind: 'internal' } as const;
const noPolicies: PolicyEvaluation = { policyIds: [], denial: undefined };

/**
 * The totals by which a use is judged, locked until the transaction ends, so that no other request uses up the cap meanwhile.
 *
 * A vault elsewhere is not waited for with a lock: what only signs is judged by the totals as they are, and after the
 * signature, which is not given out if that fails, by the locked ones. Otherwise everything would run again after the vault's answer,
 * and requests of one wallet would sign one after the other.
 */
function totalsFor(
  context: OperationContext,
  { id }: FoundWallet,
  { action, onlySigns = false }: DecodedUse,
) {
  const waits = onlySigns && context.vault.isLocal !== true;
  return waits ? beginRunningTotals(context, id, action) : openRunningTotals(context, id, action);
}

/** The refusal of a use. The denial is recorded although the request is rolled back. */
function denied(
  { ids, nowMs, diagnostics, afterRefusal }: OperationContext,
  use: UseRecord,
  denial: readonly PolicyDecision[],
): ApiError {
  const traceId = ids.cuid2();
  const decisions = withBoundedTraces(denial);
  afterRefusal((em) => recordDenial({ em, ids, nowMs }, use, { traceId, decisions }));
  const data = { decision: decisions.at(-1), trace_id: traceId };
  return new ApiError('policy_violation', undefined, diagnostics ? { data } : {});
}

/** The wallet's additional signers, as `requireOwner` takes them. */
export function signersOf(wallet: WalletRow): AdditionalSigner[] {
  const signers = JSON.parse(wallet.additional_signers) as WalletAdditionalSigner;
  return signers.map(({ signer_id: signerId, override_policy_ids: overridePolicyIds }) =>
    overridePolicyIds === undefined ? { signerId } : { signerId, overridePolicyIds },
  );
}
