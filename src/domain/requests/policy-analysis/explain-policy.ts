import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import type { CompiledPolicy } from '../../../policy/compile.ts';
import { decisionOf, type ImpliedDecision, type UnitTrace } from '../../../policy/evaluate.ts';
import { traceLength } from '../../../policy/trace-length.ts';
import type { ChainType } from '../../../signing/chains.ts';
import { peekRunningTotals } from '../../access/aggregations/running-totals.ts';
import { decide, loadPolicy, type NamedPolicy } from '../../access/policies/enforce-policies.ts';
import { findPolicy } from '../../access/policies/find-policy.ts';
import { type ActionView, renderAction } from '../../access/policies/render-action.ts';
import { applicablePolicies } from '../../wallets/wallet-uses/applicable-policies.ts';
import { signersOf } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { FoundWallet } from '../../wallets/wallets/wallet-row.ts';
import {
  type AnalysisContext,
  compileDraft,
  type DraftPolicy,
  evaluatedAction,
  findAppOf,
  inRequest,
  requireChain,
} from './analysis-context.ts';
import { decodeUse } from './decode-use.ts';

/** The question: how a draft policy, a stored policy or a wallet's policies would decide a request. */
export interface ExplainInput {
  readonly app_id?: string | undefined;
  readonly policy?: DraftPolicy | undefined;
  readonly policy_id?: string | undefined;
  readonly wallet_id?: string | undefined;
  /** The additional signer who signs in place of the owner. */
  readonly signer_id?: string | undefined;
  readonly operation?: string | undefined;
  readonly request: object;
}

export interface Explanation {
  readonly app_id: string;
  readonly wallet_id: string | null;
  readonly operation: string;
  readonly judged_at_ms: number;
  /** Derived from the traces. */
  readonly decision: 'allowed' | 'denied';
  readonly action: ActionView;
  /** All policies that were evaluated. With none, everything is allowed. */
  readonly policies: readonly ExplainedPolicy[];
}

interface ExplainedPolicy {
  readonly policy_id: string;
  /** The engine's decision. */
  readonly allowed: boolean;
  /** The decision derived from the trace. */
  readonly recomputed: ImpliedDecision;
  readonly units: readonly UnitTrace[];
  /** Rules for other methods, which were not evaluated. */
  readonly other_rules: readonly { rule_id: string; rule_name: string; method: string; action: string }[];
}

/** The longest trace returned, in characters. */
const MAX_EXPLAINED = 16 * 1024 * 1024;

type AppContext = AnalysisContext & Pick<OperationContext, 'app'>;

/**
 * Evaluates a request without executing it: nothing is signed, recorded, counted or locked.
 *
 * @throws ApiError not_found; invalid_data for a question that names no policy or two, or a request that the
 * operation would refuse; invalid_policy_format for an invalid draft.
 */
export async function explainPolicy(context: AnalysisContext, input: ExplainInput): Promise<Explanation> {
  const { policy_id: policyId, wallet_id: walletId, operation = 'walletRpc', request } = input;
  const app = await findAppOf(context, { appId: input.app_id, walletId, policyId });
  const own: AppContext = { ...context, app };
  const wallet =
    walletId === undefined ? undefined : await findWallet(own, walletId, { includeArchived: true });
  const { policies, chainType } = await policiesOf(own, input, wallet);
  context.checkRequest(operation, request, '/request');
  const refused = (error: unknown): never => {
    throw inRequest(error);
  };
  const judged = { chainType, address: wallet?.address };
  const decoded = await decodeUse(judged, { operation, request }).catch(refused);
  const action = evaluatedAction(app, decoded);
  const totals = await peekRunningTotals(own, wallet?.id ?? '', action).catch(refused);
  const explained: ExplainedPolicy[] = [];
  for (const policy of policies) {
    const { allowed, units } = await decide(own, policy, action, totals).catch(refused);
    if (traceLength(units) > MAX_EXPLAINED)
      throw invalidField('/request', 'has too many values: the explanation is too large to return');
    const recomputed = decisionOf({ units });
    const other = otherRules(policy, action);
    explained.push({ policy_id: policy.id, allowed, recomputed, units, other_rules: other });
  }
  return {
    app_id: app.id,
    wallet_id: wallet?.id ?? null,
    operation,
    judged_at_ms: context.nowMs,
    decision: explained.every(({ recomputed }) => recomputed.allowed) ? 'allowed' : 'denied',
    action: renderAction(action),
    policies: explained,
  };
}

async function policiesOf(
  context: AppContext,
  input: ExplainInput,
  wallet: FoundWallet | undefined,
): Promise<{ policies: readonly CompiledPolicy[]; chainType: ChainType }> {
  const { policy: draft, policy_id: policyId } = input;
  if (draft !== undefined && policyId !== undefined)
    throw invalidField('/policy_id', 'expected either `policy` or `policy_id`, not both');
  if (draft !== undefined) {
    const compiled = await compileDraft(context, draft, '/policy');
    if (wallet !== undefined) requireChain(draft.chain_type, wallet.chain_type, '/policy/chain_type');
    return { policies: [compiled], chainType: draft.chain_type as ChainType };
  }
  if (policyId !== undefined) {
    const { chainType } = await findPolicy(context, policyId);
    if (wallet !== undefined) requireChain(chainType, wallet.chain_type, '/policy_id');
    return { policies: [await loadPolicy(context, { id: policyId })], chainType: chainType as ChainType };
  }
  if (wallet === undefined)
    throw invalidField('/policy', 'one of `policy`, `policy_id` and `wallet_id` is required');
  const policies: CompiledPolicy[] = [];
  for (const named of policiesFor(wallet, input.signer_id)) policies.push(await loadPolicy(context, named));
  return { policies, chainType: wallet.chain_type as ChainType };
}

function policiesFor(wallet: FoundWallet, signerId: string | undefined): readonly NamedPolicy[] {
  if (signerId === undefined) return applicablePolicies(wallet, { kind: 'owner' });
  const signer = signersOf(wallet).find((each) => each.signerId === signerId);
  if (signer === undefined) throw invalidField('/signer_id', 'the wallet has no such signer');
  return applicablePolicies(wallet, { kind: 'signer', ...signer });
}

function otherRules({ rules }: CompiledPolicy, { method }: PolicyAction): ExplainedPolicy['other_rules'] {
  return rules
    .filter((rule) => rule.method !== method && rule.method !== '*')
    .map((rule) => ({ rule_id: rule.id, rule_name: rule.name, method: rule.method, action: rule.action }));
}
