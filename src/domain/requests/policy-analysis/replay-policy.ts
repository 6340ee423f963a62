import { setImmediate } from 'node:timers/promises';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import { exceedsComparisonLimit } from '../../../engine/policy/comparison-limit.ts';
import type { CompiledPolicy } from '../../../engine/policy/compile.ts';
import { decisionOf } from '../../../engine/policy/evaluate.ts';
import type { ChainType } from '../../../engine/signing/chains.ts';
import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import {
  type AggregationTotals,
  aggregationsFor,
  type CountedAggregation,
  contributionsOf,
} from '../../access/aggregations/aggregation-totals.ts';
import { decide } from '../../access/policies/enforce-policies.ts';
import { type RecordedUse, usesOfWallet } from '../../wallets/wallet-uses/find-uses.ts';
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

const MS_PER_SECOND = 1000;
const LONGEST_WINDOW_MS = 259_200 * MS_PER_SECOND;

/** The running totals of one wallet in a replay of past actions. */
interface ReplayedTotals {
  /**
   * Returns the totals that apply to an action at a given time. Call `count` if the action would be signed; it adds the
   * action's contribution.
   */
  at(action: PolicyAction, nowMs: number): Promise<Pick<AggregationTotals, 'totalOf'> & { count(): void }>;
}

interface Counted {
  readonly atMs: number;
  readonly amount: bigint;
}

/** Returns totals that start at zero. They contain only actions that were passed to `count`, in chronological order. */
function replayTotals(context: Pick<OperationContext, 'app' | 'em'>): ReplayedTotals {
  const groups = new Map<string, { sum: bigint; entries: Counted[] }>();
  const known = new Map<string, readonly CountedAggregation[]>();

  const sumOf = (key: string, sinceMs: number): bigint => {
    const group = groups.get(key);
    if (group === undefined) return 0n;
    const kept = group.entries.findIndex(({ atMs }) => atMs > sinceMs);
    const left = group.entries.splice(0, kept === -1 ? group.entries.length : kept);
    group.sum -= left.reduce((sum, { amount }) => sum + amount, 0n);
    return group.sum;
  };
  return {
    async at(action, nowMs) {
      const rows = known.get(action.method) ?? (await aggregationsFor(context, action.method));
      known.set(action.method, rows);
      const totals = new Map<string, bigint | 'unreadable'>();
      const added = new Map<string, bigint>();
      for (const row of rows) {
        const own = contributionsOf(row, action, nowMs);
        const keys = new Set<string>();
        for (const { groupKey, amount = 0n } of own) {
          const key = `${row.id}:${groupKey}`;
          keys.add(key);
          added.set(key, (added.get(key) ?? 0n) + amount);
        }
        const sinceMs = nowMs - row.window_seconds * MS_PER_SECOND;
        const each = [...keys].map((key) => sumOf(key, sinceMs) + (added.get(key) ?? 0n));
        const largest = each.reduce((most, total) => (total > most ? total : most), 0n);
        totals.set(row.id, own.some(({ amount }) => amount === undefined) ? 'unreadable' : largest);
      }
      return {
        totalOf: (id) => totals.get(id),
        count() {
          for (const [key, amount] of added) {
            if (amount === 0n) continue;
            const group = groups.get(key) ?? { sum: 0n, entries: [] };
            group.sum += amount;
            group.entries.push({ atMs: nowMs, amount });
            groups.set(key, group);
          }
        },
      };
    },
  };
}

export interface ReplayInput {
  readonly app_id?: string | undefined;
  readonly wallet_id: string;
  /** The policy that decides in place of all policies that decided the requests. */
  readonly draft: DraftPolicy;
  /** The start of the replay, Unix ms. By default, the time of the first stored request. */
  readonly since_ms?: number | undefined;
}

/** The decisions that change under a draft. */
export interface Replay {
  readonly app_id: string;
  readonly wallet_id: string;
  /** The number of requests that were evaluated again. */
  readonly judged: number;
  /** The number of requests that are decided differently. */
  readonly changed: number;
  readonly newly_allowed: number;
  readonly newly_denied: number;
  /**
   * The number of requests that could not be evaluated again, because they were too large to be stored, are too
   * expensive under the draft, or have a form that is no longer supported.
   */
  readonly skipped: number;
  /** The first changes, oldest first. */
  readonly changes: readonly DecisionChange[];
}

interface DecisionChange {
  readonly judged_at_ms: number;
  readonly request_id: string;
  readonly operation: string;
  readonly method: string;
  readonly was: 'allowed' | 'denied';
  readonly would_be: 'allowed' | 'denied';
  /** The unit that decides: the first unit that is not allowed, else the first unit. */
  readonly unit: string | null;
  readonly outcome: string;
  /** The draft's rule that decides; null if none does. */
  readonly rule_id: string | null;
  readonly rule_name: string | null;
}

/** The maximum number of changes that are listed. All changes are counted. */
const MAX_LISTED = 1000;
/** The number of requests that are evaluated before other work of the event loop can run. */
const AT_ONCE = 50;

type AppContext = AnalysisContext & Pick<OperationContext, 'app'>;

/**
 * Evaluates a wallet's recorded requests under a draft policy, each at its own time, and compares the decisions.
 *
 * CHOICE: the draft decides every request, regardless of the signer and the policies at that time. Condition sets are
 * used in their current state. Running totals follow the draft, so requests that it denies do not count. Requests up to
 * three days before `since_ms` count as they were decided originally.
 *
 * @throws ApiError not_found; invalid_data, invalid_policy_format for the draft.
 */
export async function replayPolicy(context: AnalysisContext, input: ReplayInput): Promise<Replay> {
  const { wallet_id: walletId, since_ms: sinceMs = 0, draft } = input;
  const app = await findAppOf(context, { appId: input.app_id, walletId });
  const own: AppContext = { ...context, app };
  const wallet = await findWallet(own, walletId, { includeArchived: true });
  requireChain(draft.chain_type, wallet.chain_type, '/draft/chain_type');
  const policy = await compileDraft(own, draft, '/draft');
  const totals = replayTotals(own);
  const replay = { judged: 0, newly_allowed: 0, newly_denied: 0, skipped: 0 };
  const changes: DecisionChange[] = [];
  let seen = 0;
  for await (const use of usesOfWallet(context.em, wallet.id, sinceMs - LONGEST_WINDOW_MS)) {
    seen += 1;
    if (seen % AT_ONCE === 0) await setImmediate();
    const signing = { chainType: wallet.chain_type as ChainType, address: wallet.address };
    const decoded = await actionOf(signing, use);
    const action = decoded === undefined ? undefined : evaluatedAction(app, decoded);
    if (use.judgedAtMs < sinceMs) {
      if (action !== undefined && use.decision === 'allowed')
        (await totals.at(action, use.judgedAtMs)).count();
      continue;
    }
    if (action === undefined) {
      replay.skipped += 1;
      continue;
    }
    const change = await judgeAgain(own, { policy, totals, use, action });
    if (change === 'not judged') {
      replay.skipped += 1;
      continue;
    }
    replay.judged += 1;
    if (change === undefined) continue;
    replay[change.would_be === 'allowed' ? 'newly_allowed' : 'newly_denied'] += 1;
    if (changes.length < MAX_LISTED) changes.push(change);
  }
  const changed = replay.newly_allowed + replay.newly_denied;
  return { app_id: app.id, wallet_id: wallet.id, ...replay, changed, changes };
}

/** Decodes a recorded request; undefined when it cannot be evaluated again. */
async function actionOf(
  wallet: { chainType: ChainType; address: string },
  { operation, request }: RecordedUse,
): Promise<PolicyAction | undefined> {
  if (request === undefined) return undefined;
  try {
    return await decodeUse(wallet, { operation, request });
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return undefined;
    throw error;
  }
}

async function judgeAgain(
  context: AppContext,
  again: { policy: CompiledPolicy; totals: ReplayedTotals; use: RecordedUse; action: PolicyAction },
): Promise<DecisionChange | 'not judged' | undefined> {
  const { policy, use, action } = again;
  if (exceedsComparisonLimit(policy, action, use.judgedAtMs)) return 'not judged';
  const totals = await again.totals.at(action, use.judgedAtMs);
  const trace = await decide({ ...context, nowMs: use.judgedAtMs }, policy, action, totals);
  const { allowed, units } = decisionOf(trace);
  if (allowed) totals.count();
  const wouldBe = allowed ? 'allowed' : 'denied';
  if (wouldBe === use.decision) return undefined;
  const deciding = units.find(({ outcome }) => outcome !== 'allowed') ?? units[0];
  const ruleId = deciding?.deciding_rule_id ?? null;
  return {
    judged_at_ms: use.judgedAtMs,
    request_id: use.requestId,
    operation: use.operation,
    method: use.method,
    was: use.decision,
    would_be: wouldBe,
    unit: deciding?.unit ?? null,
    outcome: deciding?.outcome ?? 'no_unit',
    rule_id: ruleId,
    rule_name: policy.rules.find(({ id }) => id === ruleId)?.name ?? null,
  };
}
