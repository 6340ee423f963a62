import { type Kysely, type RawBuilder, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { bytesTo0xHex } from '../../../engine/crypto/encoding.ts';
import type { ActionUnit, PolicyAction, PolicyFacts, SetCandidate } from '../../../engine/policy/action.ts';
import { exceedsComparisonLimit, MAX_COMPARISONS } from '../../../engine/policy/comparison-limit.ts';
import { type CompiledPolicy, compilePolicy, type RuleInput } from '../../../engine/policy/compile.ts';
import {
  collectLookups,
  evaluatePolicy,
  findDeniedUnit,
  type PolicyDecision,
  rulesFor,
} from '../../../engine/policy/evaluate.ts';
import { setCandidateKey } from '../../../engine/policy/operators.ts';
import { invalidField, StaleReadError } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import type { AggregationTotals } from '../aggregations/aggregation-totals.ts';
import { NUMBER_KEY } from '../condition-sets/condition-set.entity.ts';

// HOT: runs for every signature under a policy (bench `policy`).

type EnforceContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/** A reference to a policy of the app. */
export interface NamedPolicy {
  readonly id: string;
  /** The digest of the policy's rules, if it was read together with the reference to the policy. */
  readonly rulesDigest?: string | undefined;
}

/** A compiled policy and the digest of its rules, which changes with the policy. */
interface Kept {
  readonly rulesDigest: string;
  readonly policy: CompiledPolicy;
}

const MAX_KEPT_POLICIES = 1000;
/** The maximum number of values that one query looks up in a condition set. */
const MAX_ASKED = 500;
const compiled = new LRUCache<string, Kept>({ max: MAX_KEPT_POLICIES });

/** The result of evaluating an action under the applicable policies. */
export interface PolicyEvaluation {
  /** The evaluated policies, in order. */
  readonly policyIds: readonly string[];
  /** Set if a policy denied the action: the decisions in order with their full traces, the denying one last. */
  readonly denial: readonly PolicyDecision[] | undefined;
}

interface Asked {
  readonly policy: CompiledPolicy;
  readonly facts: PolicyFacts;
}

/**
 * Evaluates an action under every applicable policy, and stops at the first denial. All policies must allow the action.
 * Only denials get a trace, because a trace takes several times as long as the decision.
 *
 * @throws ApiError what `decide` throws.
 */
export async function evaluatePolicies(
  context: EnforceContext,
  policies: readonly NamedPolicy[],
  action: PolicyAction,
  totals: Pick<AggregationTotals, 'totalOf'>,
): Promise<PolicyEvaluation> {
  const asked: Asked[] = [];
  const policyIds = policies.map(({ id }) => id);
  for (const [index, named] of policies.entries()) {
    const policy = await loadPolicy(context, named);
    const facts = await factsFor(context, policy, action, totals);
    const denied = findDeniedUnit(policy, action, facts);
    if (denied === undefined && action.units.length > 0) {
      asked.push({ policy, facts });
      continue;
    }
    return {
      policyIds: policyIds.slice(0, index + 1),
      denial: [
        ...asked.map((one) => traceOf(one, action, action.units[0])),
        traceOf({ policy, facts }, action, denied),
      ],
    };
  }
  return { policyIds, denial: undefined };
}

/**
 * CHOICE: the maximum number of conditions for which a trace shows every unit of the action. Beyond it, the trace shows
 * only the unit that decides, because the full trace takes longer than the decision.
 */
const MAX_TRACED_CONDITIONS = 2_000;

/**
 * Evaluates the action again, with a trace.
 *
 * @param deciding the unit to show if the trace cannot show all units.
 */
function traceOf({ policy, facts }: Asked, action: PolicyAction, deciding?: ActionUnit): PolicyDecision {
  const conditions = rulesFor(policy, action).reduce((sum, rule) => sum + rule.conditions.length, 0);
  const isShort = conditions * action.units.length <= MAX_TRACED_CONDITIONS;
  const units = isShort || deciding === undefined ? action.units : [deciding];
  return evaluatePolicy(policy, { ...action, units }, facts);
}

/**
 * Evaluates an action under one policy. The result contains everything that the decision depends on.
 *
 * @throws ApiError invalid_data for a request with so many calls or values that its evaluation would delay other
 * requests.
 */
export async function decide(
  context: EnforceContext,
  policy: CompiledPolicy,
  action: PolicyAction,
  totals: Pick<AggregationTotals, 'totalOf'>,
): Promise<PolicyDecision> {
  return evaluatePolicy(policy, action, await factsFor(context, policy, action, totals));
}

/**
 * Reads the facts about the action that the policy needs from the database.
 *
 * @throws ApiError what `decide` throws.
 */
async function factsFor(
  context: EnforceContext,
  policy: CompiledPolicy,
  action: PolicyAction,
  totals: Pick<AggregationTotals, 'totalOf'>,
): Promise<PolicyFacts> {
  if (exceedsComparisonLimit(policy, action, context.nowMs)) {
    const message = `asks for more than ${MAX_COMPARISONS} comparisons under the policy; send fewer calls or values at once`;
    throw invalidField('/params', message);
  }
  const memberships = new Map<string, ReadonlySet<string> | undefined>();
  for (const { conditionSetId, candidates } of collectLookups(policy, action, context.nowMs)) {
    memberships.set(conditionSetId, await findMembers(context, conditionSetId, candidates));
  }
  return {
    nowMs: context.nowMs,
    inConditionSet: (setId, candidate) => memberships.get(setId)?.has(setCandidateKey(candidate)),
    aggregation: (id) => totals.totalOf(id),
  };
}

const selectDigest = prepareQuery<{ appId: string; id: string }, { rules_digest: string }>(
  (database, { appId, id }) =>
    database.selectFrom('policies').select('rules_digest').where('id', '=', id).where('app_id', '=', appId),
);

/** Loads a policy of the app in compiled form. Reads its rules only if the cached form is outdated. */
export async function loadPolicy(
  { app, em }: EnforceContext,
  { id, rulesDigest }: NamedPolicy,
): Promise<CompiledPolicy> {
  const digest = rulesDigest ?? (await selectDigest(em, { appId: app.id, id })).rows[0]?.rules_digest;
  const kept = compiled.get(id);
  if (kept !== undefined && kept.rulesDigest === digest) return kept.policy;
  const row = await em
    .getKysely<Tables>()
    .selectFrom('policies')
    .select(['chain_type', 'rules', 'rules_digest'])
    .where('id', '=', id)
    .where('app_id', '=', app.id)
    .executeTakeFirst();
  // INVARIANT: a policy in use is never deleted. If it does not exist, it was detached from the wallet and deleted
  // after the wallet was read.
  if (row === undefined) throw new StaleReadError(`policy ${id} is named by a wallet and does not exist`);
  const rules = JSON.parse(row.rules) as RuleInput[];
  const policy = compilePolicy({ id, chain_type: row.chain_type, rules });
  compiled.set(id, { rulesDigest: row.rules_digest, policy });
  return policy;
}

/** Returns the keys of the candidates that are in the set; undefined when the set no longer exists. */
async function findMembers(
  { app, em }: EnforceContext,
  conditionSetId: string,
  candidates: readonly SetCandidate[],
): Promise<ReadonlySet<string> | undefined> {
  const database = em.getKysely<Tables>();
  const set = await database
    .selectFrom('condition_sets')
    .select('id')
    .where('id', '=', conditionSetId)
    .where('app_id', '=', app.id)
    .executeTakeFirst();
  if (set === undefined) return undefined;
  const held = async (asked: keyof SetCandidate): Promise<ReadonlySet<string>> =>
    itemsHeld(
      database,
      conditionSetId,
      itemKeys[asked],
      candidates.flatMap((candidate) => candidate[asked]),
    );
  const items = {
    exact: await held('exact'),
    ignoringCase: await held('ignoringCase'),
    numbers: await held('numbers'),
  };
  const isHeld = ({ exact, ignoringCase, numbers }: SetCandidate): boolean =>
    exact.some((text) => items.exact.has(text)) ||
    ignoringCase.some((text) => items.ignoringCase.has(text)) ||
    numbers.some((text) => items.numbers.has(text));
  return new Set(candidates.filter(isHeld).map(setCandidateKey));
}

/** The expressions for the three notations in which the items of a set are compared with a candidate. */
const itemKeys = {
  exact: sql<string>`value`,
  ignoringCase: sql<string>`value_lower`,
  numbers: sql<string>`${sql.raw(NUMBER_KEY)}`,
};

/** Returns the given keys that occur among the items of the set. A batch of transactions can look up many keys. */
async function itemsHeld(
  database: Kysely<Tables>,
  conditionSetId: string,
  key: RawBuilder<string>,
  asked: readonly string[],
): Promise<ReadonlySet<string>> {
  // No set can contain a malformed string or U+0000, and PostgreSQL does not accept them as parameters.
  const keys = asked.filter((text) => text.isWellFormed() && !text.includes('\0'));
  const held = new Set<string>();
  for (let at = 0; at < keys.length; at += MAX_ASKED) {
    const rows = await database
      .selectFrom('condition_set_items')
      .select(key.as('text'))
      .distinct()
      .where('condition_set_id', '=', conditionSetId)
      .where(key, 'in', keys.slice(at, at + MAX_ASKED))
      .execute();
    for (const { text } of rows) held.add(text);
  }
  return held;
}

/** The JSON form of a decoded action. */
export interface ActionView {
  readonly method: string;
  readonly units: readonly Readonly<Record<string, unknown>>[];
}

/**
 * Converts a decoded action to JSON. Large integers become decimal strings, bytes become `0x` hex, and absent fields
 * are left out. The names are those of `src/engine/policy/action.ts`.
 */
export function renderAction({ method, units }: PolicyAction): ActionView {
  return { method, units: units.map((unit) => render(unit) as Readonly<Record<string, unknown>>) };
}

function render(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Uint8Array) return bytesTo0xHex(value);
  if (Array.isArray(value)) return value.map(render);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, render(member)]));
}
