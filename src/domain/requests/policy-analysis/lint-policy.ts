import { setImmediate } from 'node:timers/promises';
import { loadOnce } from '../../../engine/load-once.ts';
import { type CompiledPolicy, compileRule } from '../../../engine/policy/compile.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { ruleMethodsOf } from '../../../engine/policy/methods.ts';
import { type ChainType, chains } from '../../../engine/signing/chains.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { peekRunningTotals } from '../../access/aggregations/aggregation-totals.ts';
import { decide, loadPolicy } from '../../access/policies/enforce-policies.ts';
import { findPolicy } from '../../access/policies/find-policy.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import {
  type AnalysisContext,
  compileDraft,
  type DraftPolicy,
  decodeUse,
  evaluatedAction,
  findAppOf,
  requireChain,
} from './explain-policy.ts';
import { ethereumEffects } from './lint-ethereum.ts';
import {
  type Effect,
  hashRequest,
  keyExport,
  type LintSubject,
  type OtherKind,
  phraseExport,
  rawSignEffects,
  type TriedRequest,
  unhashedTransaction,
} from './lint-requests.ts';
import { durablePayments, solanaEffects } from './lint-solana.ts';
import { suiEffects } from './lint-sui.ts';
import { tronEffects } from './lint-tron.ts';

export interface LintInput {
  readonly app_id?: string | undefined;
  readonly policy?: DraftPolicy | undefined;
  readonly policy_id?: string | undefined;
  /** The wallet that makes the requests; if absent, an example wallet. */
  readonly wallet_id?: string | undefined;
  /** If given, replaces the app's setting `strict_methods`. */
  readonly strict_methods?: boolean | undefined;
}

export interface PolicyLint {
  readonly app_id: string;
  readonly policy_id: string;
  readonly strict_methods: boolean;
  readonly gaps: PolicyGap[];
}

/** A request that passes although it has the effect of a denied request. */
interface PolicyGap {
  readonly kind: GapKind;
  readonly message: string;
  readonly denied: ShownRequest | null;
  readonly passes: ShownRequest;
  /** The rule that allows the request; null if no rule decides. */
  readonly rule_id: string | null;
  readonly rule_name: string | null;
  readonly remedy: Remedy | null;
}

type ShownRequest = Pick<TriedRequest, 'operation' | 'method' | 'request'>;

/** The change that would deny a passing request: an app setting, or a new rule. */
type Remedy = { readonly setting: 'strict_methods' } | { readonly rule: RemedyRule };

type RemedyRule = {
  readonly name: string;
  readonly method: string;
  readonly action: 'DENY';
  readonly conditions: readonly ConditionInput[];
};

type GapKind = OtherKind | 'key_export' | 'other_method' | 'lasting_transaction';

const messages: Readonly<Record<GapKind, string>> = {
  key_export: 'the private key can be exported, and then signs everything',
  hash_signing: 'the hash of a denied request can be signed, which is the same signature',
  raw_signing: 'the bytes of a denied transaction or message can be signed, which is the same signature',
  user_operation_hash: 'a denied user operation can be signed as a message or as typed data',
  other_method: 'a denied call can be made by another method, whose rules are separate',
  lasting_transaction:
    'a transaction that is signed in time can be sent later: a durable nonce keeps it valid until the nonce is used',
  sibling_call: 'what a denied call moves can be moved by another function, instruction or transaction type',
  token_transfer: 'a payment is denied, but tokens can be transferred: they are not part of its amount',
};

/** Returns whether a signed hash has the effect of its transaction on this chain type. */
const signsHashes = (chainType: string): boolean =>
  !['solana', 'aptos', 'movement', 'spark'].includes(chainType);

/** The methods under which policies evaluate hashes, on chain types whose transactions have their own rules. */
const hashMethods: Readonly<Partial<Record<ChainType, string>>> = {
  sui: 'signTransactionBytes',
  tron: 'signTransactionBytes',
  xrpl: 'xrpl_signTransaction',
};

/**
 * An example hash. Its value does not matter, because a hash does not show to which transaction it belongs. It is below
 * the order of the Stark curve.
 */
const SOME_HASH = new Uint8Array(32).fill(0x01);

interface Verdict {
  readonly isAllowed: boolean;
  readonly ruleId: string | null;
}

/** Evaluates a request; undefined for a request that the chain type does not support. */
type Judge = (tried: TriedRequest, terms?: Partial<JudgeTerms>) => Promise<Verdict | undefined>;

interface JudgeTerms {
  readonly policy: CompiledPolicy;
  readonly strict: boolean;
}

/**
 * Finds requests that a policy allows although it denies the same effect in another form. The policy engine evaluates
 * every gap: each reported request does pass, and each suggested change does deny it.
 *
 * @throws ApiError not_found; invalid_data for an input that names no policy or two, or a wallet of another chain
 * type; invalid_policy_format.
 */
export async function lintPolicy(context: AnalysisContext, input: LintInput): Promise<PolicyLint> {
  const { policy: draft, policy_id: policyId, wallet_id: walletId } = input;
  if ((draft === undefined) === (policyId === undefined)) {
    throw invalidField('/policy', 'expected either `policy` or `policy_id`');
  }
  const app = await findAppOf(context, { appId: input.app_id, policyId, walletId });
  const own = { ...context, app };
  const strict = input.strict_methods ?? app.settings.strict_methods === true;
  const chainType = (draft?.chain_type ?? (await findPolicy(own, policyId!)).chainType) as ChainType;
  const policy =
    draft === undefined
      ? await loadPolicy(own, { id: policyId! })
      : await compileDraft(own, draft, '/policy');
  const wallet = walletId === undefined ? undefined : await findWallet(own, walletId);
  if (wallet !== undefined) requireChain(chainType, wallet.chain_type, '/wallet_id');
  const sender = wallet?.address;
  const judge = createJudge(own, { policy, strict, chainType, sender });
  const gaps = await findGaps({ policy, strict, chainType, sender, judge });
  return { app_id: app.id, policy_id: policy.id, strict_methods: strict, gaps: [...gaps] };
}

interface Linted extends JudgeTerms {
  readonly chainType: ChainType;
  readonly sender: string | undefined;
}

function createJudge(context: AnalysisContext & Pick<OperationContext, 'app'>, given: Linted): Judge {
  const { chainType, sender: address } = given;
  return async ({ operation, request }, { policy = given.policy, strict = given.strict } = {}) => {
    try {
      context.checkRequest(operation, request, '');
      const decoded = await decodeUse({ chainType, address }, { operation, request });
      const action = evaluatedAction({ settings: { strict_methods: strict } }, decoded);
      const totals = await peekRunningTotals(context, '', action);
      const { allowed, units } = await decide(context, policy, action, totals);
      return { isAllowed: allowed, ruleId: units[0]?.deciding_rule_id ?? null };
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return undefined;
      throw error;
    }
  };
}

type Linting = Linted & { readonly judge: Judge };

/**
 * Returns a collector of gaps. It keeps one gap for each kind, each method that passes, and each position among the
 * requests of that kind.
 */
function createFindings({ policy, judge, ...linted }: Linting) {
  const gaps = new Map<string, PolicyGap>();
  return {
    gaps,
    async tryEach(
      kind: GapKind,
      denied: TriedRequest | null,
      requests: readonly TriedRequest[],
    ): Promise<void> {
      for (const passes of requests) {
        const key = JSON.stringify([kind, passes.method, passes.operation, passes.marks]);
        if (gaps.has(key)) continue;
        const verdict = await judge(passes);
        if (verdict?.isAllowed !== true) continue;
        const rule = policy.rules.find(({ id }) => id === verdict.ruleId);
        if (rule !== undefined && isMeant(kind, rule, passes)) continue;
        gaps.set(key, {
          kind,
          message: messages[kind],
          denied: denied && shown(denied),
          passes: shown(passes),
          rule_id: rule?.id ?? null,
          rule_name: rule?.name ?? null,
          remedy: await remedyFor({ ...linted, policy, judge }, passes),
        });
      }
    },
  };
}

/** Returns whether a rule is meant to allow the request, because it names the export or the token. */
function isMeant(
  kind: GapKind,
  rule: CompiledPolicy['rules'][number],
  { method, token }: TriedRequest,
): boolean {
  if (kind === 'key_export') return rule.method === method;
  if (kind !== 'token_transfer' || token === undefined) return false;
  const named = rule.conditions.flatMap(({ input }) => input.value);
  return named.some((value) => value.toLowerCase() === token.toLowerCase());
}

function shown({ operation, method, request }: TriedRequest): ShownRequest {
  return { operation, method, request };
}

/**
 * Returns the change that denies the request: the setting if that suffices, else a new rule; null if neither denies it.
 */
async function remedyFor({ policy, strict, chainType, judge }: Linting, passes: TriedRequest) {
  const isDenied = async (terms: Partial<JudgeTerms>) => (await judge(passes, terms))?.isAllowed === false;
  if (!strict && (await isDenied({ strict: true }))) return { setting: 'strict_methods' as const };
  if (!ruleMethodsOf(chainType).includes(passes.method)) return null;
  const { method, marks: conditions = [] } = passes;
  const rule: RemedyRule = { name: `No ${method} of this kind`, method, action: 'DENY', conditions };
  const added = compileRule({ id: 'remedy', ...rule }, chainType);
  return (await isDenied({ policy: { ...policy, rules: [...policy.rules, added] } })) ? { rule } : null;
}

async function findGaps(linting: Linting): Promise<readonly PolicyGap[]> {
  const { policy, chainType, sender } = linting;
  const findings = createFindings(linting);
  // A seed phrase exists only if the chain type derives keys from one.
  const exports = chains[chainType].fromPhrase ? [keyExport, phraseExport] : [keyExport];
  const conditions = policy.rules.flatMap((rule) => rule.conditions.map(({ input }) => input));
  for await (const effect of effectsOn(chainType, { conditions, sender })) {
    await setImmediate();
    await tryEffect(linting, findings, { effect, exports });
  }
  if (chainType === 'solana' && policy.rules.some(endsInTime)) {
    await findings.tryEach('lasting_transaction', null, [...durablePayments({ conditions, sender })]);
  }
  // A DENY rule about something else does not show what its author intends for other requests. Only an export and a
  // hash are tried, because they can have any effect.
  if (policy.rules.some(({ action }) => action === 'DENY')) {
    await findings.tryEach('key_export', null, exports);
    const method = hashMethods[chainType] ?? 'signRawMessageBytes';
    const signed = signsHashes(chainType)
      ? hashRequest(SOME_HASH, method)
      : unhashedTransaction(chainType, sender);
    if (signed !== undefined) await findings.tryEach('hash_signing', null, [signed]);
  }
  return [...findings.gaps.values()];
}

/** Returns whether a rule limits a permission in time. */
function endsInTime({ action, conditions }: CompiledPolicy['rules'][number]): boolean {
  const ends = action === 'ALLOW' ? ['lt', 'lte'] : ['gt', 'gte'];
  return conditions.some(({ input }) => input.field_source === 'system' && ends.includes(input.operator));
}

// Loading the codec of XRPL takes a tenth of the start time, so it is loaded on demand.
const loadXrpl = loadOnce(() => import('./lint-xrpl.ts'));

async function* xrplEffects(subject: LintSubject): AsyncGenerator<Effect> {
  yield* (await loadXrpl()).xrplEffects(subject);
}

function effectsOn(chainType: ChainType, subject: LintSubject): AsyncGenerator<Effect> | Generator<Effect> {
  switch (chainType) {
    case 'ethereum':
      return ethereumEffects(subject);
    case 'solana':
      return solanaEffects(subject);
    case 'tron':
      return tronEffects(subject);
    case 'sui':
      return suiEffects(subject);
    case 'xrpl':
      return xrplEffects(subject);
    default:
      return rawSignEffects(chainType, subject);
  }
}

async function tryEffect(
  { policy, judge }: Linting,
  { tryEach }: ReturnType<typeof createFindings>,
  { effect, exports }: { readonly effect: Effect; readonly exports: readonly TriedRequest[] },
): Promise<void> {
  const denied: TriedRequest[] = [];
  for (const call of effect.calls) if ((await judge(call))?.isAllowed === false) denied.push(call);
  const [first] = denied;
  if (first === undefined) return;
  await tryEach('key_export', first, exports);
  // A method that no rule names is denied by default. Such a denial says nothing about the author's intention.
  const meant = denied.find(({ method }) => policy.rules.some((rule) => rule.method === method));
  for (const { kind, of, requests } of effect.others) {
    const like = of === undefined ? meant : denied.find(({ method }) => method === of);
    if (like !== undefined) await tryEach(kind, like, requests);
  }
  if (meant !== undefined) await tryEach('other_method', meant, effect.calls);
}
