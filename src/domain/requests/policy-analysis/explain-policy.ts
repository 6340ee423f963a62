import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  callingAccount,
  decodeRpcAction,
  exportAction,
  unfoldBatches,
} from '../../../engine/actions/decode-action.ts';
import { decodeRawSignAction } from '../../../engine/actions/decode-raw-bytes.ts';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import { type CompiledPolicy, compilePolicy } from '../../../engine/policy/compile.ts';
import { decisionOf, type ImpliedDecision, type UnitTrace } from '../../../engine/policy/evaluate.ts';
import { strictly } from '../../../engine/policy/strict-methods.ts';
import { shortenTrace, traceLength } from '../../../engine/policy/trace-length.ts';
import { type ChainType, requireRpcMethod } from '../../../engine/signing/chains.ts';
import type { RawSignParams } from '../../../engine/signing/sign-with-key.ts';
import { ApiError, invalidField, notFound, relocateIssues } from '../../../errors.ts';
import type {
  CreatePolicyRequest,
  ExportWalletRequest,
  RawSignRequest,
  TransferRequest,
  WalletRpcRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { peekRunningTotals } from '../../access/aggregations/aggregation-totals.ts';
import type { App } from '../../access/apps/app.entity.ts';
import { findApp, listApps } from '../../access/apps/find-app.ts';
import {
  type ActionView,
  decide,
  loadPolicy,
  type NamedPolicy,
  renderAction,
} from '../../access/policies/enforce-policies.ts';
import { findPolicy } from '../../access/policies/find-policy.ts';
import { PolicyEntity } from '../../access/policies/policy.entity.ts';
import { checkRules } from '../../access/policies/policy.ts';
import { asSigningRefusal } from '../../base/actions/action-refusals.ts';
import { decodeTransfer } from '../../money/wallet-actions/transfer.ts';
import { applicablePolicies, type WalletUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { type FoundWallet, signersOf, WalletEntity } from '../../wallets/wallets/wallet.entity.ts';
import { isSendingRequest } from '../wallet-rpc/plan-rpc.ts';
import { readSentAction } from '../wallet-rpc/wallet-rpc.ts';

/** The context in which operators analyze policies. No app is authenticated. */
export interface AnalysisContext {
  readonly em: SqlEntityManager;
  /** The server's current time, Unix ms. */
  readonly nowMs: number;
  /** If given, the only app that the caller may examine. */
  readonly onlyAppId?: string | undefined;
  /**
   * Checks a body against the API document's schema of an operation; pointers begin with `at`.
   *
   * @throws ApiError invalid_data
   */
  readonly checkRequest: (operationId: string, body: unknown, at: string) => void;
}

/** A policy that is not stored. Rules and chain type are required, everything else has a default. */
export type DraftPolicy = Pick<CreatePolicyRequest, 'chain_type' | 'rules'> & Partial<CreatePolicyRequest>;

/**
 * Returns the app of an analysis: the named app, else the app of the named wallet or policy, else the only app of the
 * server. With `onlyAppId`, returns that app.
 *
 * @throws ApiError not_found; invalid_data when the input does not determine one of several apps.
 */
export async function findAppOf(
  { em, onlyAppId }: Pick<AnalysisContext, 'em' | 'onlyAppId'>,
  named: { appId?: string | undefined; walletId?: string | undefined; policyId?: string | undefined },
): Promise<App> {
  if (onlyAppId !== undefined) {
    if (named.appId !== undefined && named.appId !== onlyAppId) throw notFound('App');
    return findApp(em, onlyAppId);
  }
  if (named.appId !== undefined) return findApp(em, named.appId);
  const appId = (await appIdOfWallet(em, named.walletId)) ?? (await appIdOfPolicy(em, named.policyId));
  if (appId !== undefined) return findApp(em, appId);
  const apps = await listApps(em);
  const [only] = apps;
  if (only === undefined || apps.length > 1)
    throw invalidField('/app_id', `is required: there are ${apps.length} apps`);
  return only;
}

async function appIdOfWallet(em: SqlEntityManager, id: string | undefined): Promise<string | undefined> {
  if (id === undefined) return undefined;
  return (await em.findOne(WalletEntity, { id }))?.appId;
}

async function appIdOfPolicy(em: SqlEntityManager, id: string | undefined): Promise<string | undefined> {
  if (id === undefined) return undefined;
  return (await em.findOne(PolicyEntity, { id }))?.appId;
}

/**
 * Compiles a draft as if it were stored.
 *
 * @param at JSON pointer to the draft in the analysis request.
 * @throws ApiError invalid_data, invalid_policy_format
 */
export async function compileDraft(
  context: AnalysisContext & Pick<OperationContext, 'app'>,
  draft: DraftPolicy,
  at: string,
): Promise<CompiledPolicy> {
  const whole = { version: '1.0', name: 'Draft', ...draft };
  context.checkRequest('createPolicy', whole, at);
  try {
    await checkRules(context, draft.rules, draft.chain_type, (index) => `/rules/${index}`);
  } catch (error) {
    throw relocateIssues(error, at);
  }
  const rules = draft.rules;
  return compilePolicy({
    id: 'draft',
    chain_type: draft.chain_type,
    // Rules of a stored policy keep their ids, so that traces show ids that the author knows.
    rules: rules.map((rule, index) => ({ ...rule, id: rule.id ?? `rule ${index}` })),
  });
}

/**
 * Returns the action in the form that the app's policies evaluate.
 *
 * NOTE: in every composition, `strict_methods` is off for apps that do not set it.
 */
export function evaluatedAction({ settings }: Pick<App, 'settings'>, action: PolicyAction): PolicyAction {
  return settings.strict_methods === true ? strictly(action) : action;
}

/**
 * Refuses to evaluate a policy for a wallet of another chain type.
 *
 * @throws ApiError invalid_data
 */
export function requireChain(policyChain: string, walletChain: string, pointer: string): void {
  if (policyChain === walletChain) return;
  throw invalidField(pointer, `the policy is for ${policyChain}, the wallet is on ${walletChain}`);
}

/** Rewrites the pointers of an error in the inner request so that they start at the root of the analysis request. */
function inRequest(error: unknown): unknown {
  return error instanceof ApiError ? relocateIssues(error, '/request') : error;
}

/** The operations whose requests can be evaluated without being executed. */
const judgeableOperations = ['walletRpc', 'rawSignWallet', 'exportWallet', 'transferFromWallet'] as const;

/**
 * Decodes the action of a wallet request in the same way as its execution does, in the form that policies see.
 *
 * @param address the wallet's address. Without it, a call from the wallet to itself is not recognized.
 * @throws ApiError invalid_data, invalid_solana_transaction, not_supported: the errors of the operation for a request
 * that it would not sign. Pointers start at the request's body.
 */
export async function decodeUse(
  { chainType, address }: { readonly chainType: ChainType; readonly address: string | undefined },
  { operation, request }: WalletUse,
): Promise<PolicyAction> {
  try {
    switch (operation) {
      case 'walletRpc':
        return unfoldBatches(
          await decodeRpc(chainType, request as WalletRpcRequest),
          callingAccount(request as WalletRpcRequest, address),
        );
      case 'rawSignWallet':
        return decodeRawSignAction(chainType, (request as RawSignRequest).params as RawSignParams);
      case 'exportWallet':
        return exportAction((request as ExportWalletRequest).export_seed_phrase === true);
      case 'transferFromWallet':
        return decodeTransfer(chainType, request as TransferRequest);
    }
  } catch (error) {
    throw asSigningRefusal(error);
  }
  throw invalidField('/operation', `must be one of ${judgeableOperations.join(', ')}`);
}

async function decodeRpc(chainType: ChainType, request: WalletRpcRequest): Promise<PolicyAction> {
  requireRpcMethod(chainType, request.method);
  const { method } = request;
  if (method === 'exportPrivateKey' || method === 'exportSeedPhrase') {
    return exportAction(method === 'exportSeedPhrase');
  }
  return isSendingRequest(request) ? readSentAction(request) : decodeRpcAction(request);
}

/** A question: how would a draft policy, a stored policy or a wallet's policies decide a request? */
export interface ExplainInput {
  readonly app_id?: string | undefined;
  readonly policy?: DraftPolicy | undefined;
  readonly policy_id?: string | undefined;
  readonly wallet_id?: string | undefined;
  /** The additional signer who signs instead of the owner. */
  readonly signer_id?: string | undefined;
  readonly operation?: string | undefined;
  readonly request: object;
}

interface Explanation {
  readonly app_id: string;
  readonly wallet_id: string | null;
  readonly operation: string;
  readonly judged_at_ms: number;
  /** The decision of all policies together, derived from their traces. */
  readonly decision: 'allowed' | 'denied';
  readonly action: ActionView;
  /** All policies that were evaluated. If there are none, the request is allowed. */
  readonly policies: readonly ExplainedPolicy[];
}

interface ExplainedPolicy {
  readonly policy_id: string;
  /** Whether the policy engine allows the request. */
  readonly allowed: boolean;
  /** The same decision, derived from the trace. */
  readonly recomputed: ImpliedDecision;
  readonly units: readonly UnitTrace[];
  /** Rules for other methods, which were not evaluated. */
  readonly other_rules: readonly { rule_id: string; rule_name: string; method: string; action: string }[];
}

/**
 * CHOICE: the maximum length of a trace that is shown in full, in characters. A longer trace shows only the deciding
 * part, because writing it all would delay other requests.
 */
const MAX_EXPLAINED = 1024 * 1024;

type AppContext = AnalysisContext & Pick<OperationContext, 'app'>;

/**
 * Evaluates a request without executing it: nothing is signed, recorded, counted or locked.
 *
 * @throws ApiError not_found; invalid_data for an input that names no policy or two, or a request that the operation
 * would refuse; invalid_policy_format for an invalid draft.
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
    const decision = await decide(own, policy, action, totals).catch(refused);
    const isLong = traceLength(decision.units) > MAX_EXPLAINED;
    const { allowed, units } = isLong ? shortenTrace(decision) : decision;
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
