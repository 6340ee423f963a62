import { setImmediate } from 'node:timers/promises';
import { ApiError, invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { CompiledPolicy } from '../../../policy/compile.ts';
import type { ChainType } from '../../../signing/chains.ts';
import { peekRunningTotals } from '../../access/aggregations/running-totals.ts';
import { decide, loadPolicy } from '../../access/policies/enforce-policies.ts';
import { findPolicy } from '../../access/policies/find-policy.ts';
import {
  type AnalysisContext,
  compileDraft,
  type DraftPolicy,
  evaluatedAction,
  findAppOf,
} from './analysis-context.ts';
import { decodeUse } from './decode-use.ts';
import { ethereumEffects, exportRequests, hashRequest, type TriedRequest } from './lint-candidates.ts';

export interface LintInput {
  readonly app_id?: string | undefined;
  readonly policy?: DraftPolicy | undefined;
  readonly policy_id?: string | undefined;
  /** Replaces the app's setting. */
  readonly strict_methods?: boolean | undefined;
}

export interface PolicyLint {
  readonly app_id: string;
  readonly policy_id: string;
  readonly strict_methods: boolean;
  readonly gaps: readonly PolicyGap[];
}

/** A request that has the effect of a denied one and passes. */
interface PolicyGap {
  readonly kind: keyof typeof messages;
  readonly message: string;
  readonly denied: TriedRequest | null;
  readonly passes: TriedRequest;
  /** The rule that allows it. */
  readonly rule_id: string | null;
  readonly rule_name: string | null;
}

const messages = {
  key_export: 'the private key can be exported, and then signs everything',
  hash_signing: 'the hash of a denied transaction can be signed, which is the same signature',
  user_operation_hash: 'a denied user operation can be signed as a message or as typed data',
  other_method: 'a denied call can be made by another method, whose rules are separate',
} as const;

/** An arbitrary hash: a hash does not show which transaction it belongs to. */
const SOME_HASH = `0x${'11'.repeat(32)}`;

interface Verdict {
  readonly isAllowed: boolean;
  readonly ruleId: string | null;
}

type Judge = (tried: TriedRequest) => Promise<Verdict | undefined>;

/**
 * Finds requests that a policy allows although it denies what they do under another method. Every gap is evaluated by
 * the policy engine, so each request that is reported does pass.
 *
 * @throws ApiError not_found; invalid_data for a question that names no policy or two; invalid_policy_format.
 */
export async function lintPolicy(context: AnalysisContext, input: LintInput): Promise<PolicyLint> {
  const { policy: draft, policy_id: policyId } = input;
  if ((draft === undefined) === (policyId === undefined)) {
    throw invalidField('/policy', 'expected either `policy` or `policy_id`');
  }
  const app = await findAppOf(context, { appId: input.app_id, policyId });
  const own = { ...context, app };
  const strict = input.strict_methods ?? app.settings.strict_methods === true;
  const policy =
    draft === undefined
      ? await loadPolicy(own, { id: policyId! })
      : await compileDraft(own, draft, '/policy');
  const chainType = draft?.chain_type ?? (await findPolicy(own, policyId!)).chainType;
  const judge = createJudge(own, { policy, chainType: chainType as ChainType, strict });
  const gaps = await findGaps(policy, chainType, judge);
  return { app_id: app.id, policy_id: policy.id, strict_methods: strict, gaps };
}

function createJudge(
  context: AnalysisContext & Pick<OperationContext, 'app'>,
  given: { readonly policy: CompiledPolicy; readonly chainType: ChainType; readonly strict: boolean },
): Judge {
  const settings = { strict_methods: given.strict };
  return async ({ operation, request }) => {
    try {
      context.checkRequest(operation, request, '');
      const decoded = await decodeUse(
        { chainType: given.chainType, address: undefined },
        { operation, request },
      );
      const action = evaluatedAction({ settings }, decoded);
      const totals = await peekRunningTotals(context, '', action);
      const { allowed, units } = await decide(context, given.policy, action, totals);
      return { isAllowed: allowed, ruleId: units[0]?.deciding_rule_id ?? null };
    } catch (error) {
      // The chain type does not support this request.
      if (error instanceof ApiError && error.status < 500) return undefined;
      throw error;
    }
  };
}

/** Collects gaps, one for each method that passes and kind. */
function createFindings({ rules }: CompiledPolicy, judge: Judge) {
  const gaps = new Map<string, PolicyGap>();
  return {
    gaps,
    async tryEach(
      kind: PolicyGap['kind'],
      denied: TriedRequest | null,
      requests: readonly TriedRequest[],
    ): Promise<void> {
      for (const passes of requests) {
        const key = `${kind} ${passes.method}`;
        if (gaps.has(key)) continue;
        const verdict = await judge(passes);
        if (verdict?.isAllowed !== true) continue;
        const rule = rules.find(({ id }) => id === verdict.ruleId);
        // A rule that names an export is meant to allow it.
        if (kind === 'key_export' && rule?.method === passes.method) continue;
        const [id, name] = [rule?.id ?? null, rule?.name ?? null];
        gaps.set(key, { kind, message: messages[kind], denied, passes, rule_id: id, rule_name: name });
      }
    },
  };
}

type Findings = ReturnType<typeof createFindings>;

async function findGaps(
  policy: CompiledPolicy,
  chainType: string,
  judge: Judge,
): Promise<readonly PolicyGap[]> {
  const findings = createFindings(policy, judge);
  if (chainType === 'ethereum') await tryCalls(policy, judge, findings);
  const isRestricted = policy.rules.some(({ action, method }) => action === 'DENY' || method !== '*');
  if (isRestricted) {
    // CHOICE: tries no messages and no transactions of other chain types: an export or a hash has the effect of any.
    await findings.tryEach('key_export', null, exportRequests);
    await findings.tryEach('hash_signing', null, [hashRequest(SOME_HASH)]);
  }
  return [...findings.gaps.values()];
}

async function tryCalls(policy: CompiledPolicy, judge: Judge, { tryEach }: Findings): Promise<void> {
  const conditions = policy.rules.flatMap((rule) => rule.conditions.map(({ input }) => input));
  const isNamed = (method: string): boolean => policy.rules.some((rule) => rule.method === method);
  for await (const { calls, hashes, disguised } of ethereumEffects(conditions)) {
    await setImmediate();
    const denied: TriedRequest[] = [];
    for (const call of calls) if ((await judge(call))?.isAllowed === false) denied.push(call);
    const [first] = denied;
    if (first === undefined) continue;
    await tryEach('key_export', first, exportRequests);
    const transaction = denied.find(({ method }) => method === 'eth_signTransaction');
    if (transaction !== undefined) await tryEach('hash_signing', transaction, hashes);
    const operation = denied.find(({ method }) => method === 'eth_signUserOperation');
    if (operation !== undefined) await tryEach('user_operation_hash', operation, disguised);
    // A method that no rule names is denied by default, which says nothing about the call.
    const meant = denied.find(({ method }) => isNamed(method));
    if (meant !== undefined) await tryEach('other_method', meant, calls);
  }
}
