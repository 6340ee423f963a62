import type { ActionUnit, PolicyAction, PolicyFacts, SetCandidate } from './action.ts';
import type { CompiledCondition, CompiledPolicy, CompiledRule } from './compile.ts';
import { setCandidateKey } from './operators.ts';
import type { Observation } from './values.ts';

/** `unknown` means that the condition could not be evaluated; see README, "Absence and errors". */
export type Truth = 'true' | 'false' | 'unknown';

export interface ConditionTrace {
  readonly field_source: string;
  readonly field: string;
  readonly operator: string;
  readonly value: string | readonly string[];
  readonly observed: Observation;
  readonly result: Truth;
}

export interface RuleTrace {
  readonly rule_id: string;
  readonly rule_name: string;
  readonly action: 'ALLOW' | 'DENY';
  readonly method: string;
  readonly conditions: readonly ConditionTrace[];
  readonly matched: boolean;
}

export interface UnitTrace {
  readonly unit: string;
  /** The gas terms of an EVM transaction as decimal strings: gas, wei per gas, wei. */
  readonly fee?: { readonly gas_limit: string; readonly price_per_gas: string; readonly most: string };
  readonly rules: readonly RuleTrace[];
  readonly outcome: 'allowed' | 'denied_by_rule' | 'no_rule_for_method' | 'no_rule_matched';
  /** The rule that decided; null if no rule matched. */
  readonly deciding_rule_id: string | null;
}

/** A decision with its full trace. `decisionOf` derives the same decision from the trace. */
export interface PolicyDecision {
  readonly allowed: boolean;
  readonly policy_id: string;
  readonly method: string;
  readonly units: readonly UnitTrace[];
}

/** Returns the rules that apply to an action. */
export function rulesFor(
  policy: CompiledPolicy,
  { method, isNamedOnly = false }: PolicyAction,
): readonly CompiledRule[] {
  return policy.rules.filter(
    (rule) => rule.method === method || (rule.method === '*' && !(isNamedOnly && rule.action === 'ALLOW')),
  );
}

/**
 * Combines a condition's observed values: in an ALLOW rule, every value must satisfy the condition; in a DENY rule,
 * one is enough.
 */
function judgeAll(
  condition: CompiledCondition,
  values: readonly string[],
  action: 'ALLOW' | 'DENY',
  facts: PolicyFacts,
): Truth {
  // A deleted condition set contains nothing, so the result is false, not unknown (behavior of the published
  // service).
  const isSatisfied = (value: string): boolean => condition.judge(value, facts) === true;
  return (action === 'ALLOW' ? values.every(isSatisfied) : values.some(isSatisfied)) ? 'true' : 'false';
}

function truthOf(
  condition: CompiledCondition,
  observed: Observation,
  action: 'ALLOW' | 'DENY',
  facts: PolicyFacts,
): Truth {
  if (observed.state === 'present') return judgeAll(condition, observed.values, action, facts);
  return observed.state === 'absent' ? 'false' : 'unknown';
}

export type ReadField = (condition: CompiledCondition) => Observation;

/**
 * Returns a function that reads a condition's field from the unit. It reads each field only once, however many
 * conditions use it.
 */
export function createFieldReader(unit: ActionUnit, facts: PolicyFacts): ReadField {
  const cache = new Map<CompiledCondition['observe'], Observation>();
  return ({ observe }) => {
    const cached = cache.get(observe);
    if (cached !== undefined) return cached;
    const observed = observe(unit, facts);
    cache.set(observe, observed);
    return observed;
  };
}

function traceCondition(
  condition: CompiledCondition,
  readField: ReadField,
  action: 'ALLOW' | 'DENY',
  facts: PolicyFacts,
): ConditionTrace {
  const observed = readField(condition);
  const { field_source, field, operator, value } = condition.input;
  return {
    field_source,
    field,
    operator,
    value,
    observed,
    result: truthOf(condition, observed, action, facts),
  };
}

/** Combines conditions with Kleene's AND. Fails closed: an unknown result matches a DENY and never an ALLOW. */
function ruleMatches(action: 'ALLOW' | 'DENY', conditions: readonly ConditionTrace[]): boolean {
  if (conditions.some(({ result }) => result === 'false')) return false;
  return action === 'DENY' || conditions.every(({ result }) => result === 'true');
}

function outcomeOf(rules: readonly RuleTrace[]): Pick<UnitTrace, 'outcome' | 'deciding_rule_id'> {
  if (rules.length === 0) return { outcome: 'no_rule_for_method', deciding_rule_id: null };
  const deny = rules.find(({ action, matched }) => action === 'DENY' && matched);
  if (deny) return { outcome: 'denied_by_rule', deciding_rule_id: deny.rule_id };
  const allow = rules.find(({ action, matched }) => action === 'ALLOW' && matched);
  return allow
    ? { outcome: 'allowed', deciding_rule_id: allow.rule_id }
    : { outcome: 'no_rule_matched', deciding_rule_id: null };
}

function feeOf({ fee }: ActionUnit): Pick<UnitTrace, 'fee'> {
  if (fee === undefined) return {};
  const [gas, price, most] = [fee.gasLimit, fee.pricePerGas, fee.most].map(String) as [
    string,
    string,
    string,
  ];
  return { fee: { gas_limit: gas, price_per_gas: price, most } };
}

function traceUnit(rules: readonly CompiledRule[], unit: ActionUnit, facts: PolicyFacts): UnitTrace {
  const readField = createFieldReader(unit, facts);
  const traces = rules.map((rule): RuleTrace => {
    const conditions = rule.conditions.map((condition) =>
      traceCondition(condition, readField, rule.action, facts),
    );
    return {
      rule_id: rule.id,
      rule_name: rule.name,
      action: rule.action,
      method: rule.method,
      conditions,
      matched: ruleMatches(rule.action, conditions),
    };
  });
  return { unit: unit.label, ...feeOf(unit), rules: traces, ...outcomeOf(traces) };
}

/**
 * Evaluates an action under a policy, with a trace. Allows the action only if every unit matches an ALLOW and none
 * matches a DENY. Denies an action without units. Never throws because of the action's content: conditions on
 * unreadable fields are `unknown`.
 */
export function evaluatePolicy(
  policy: CompiledPolicy,
  action: PolicyAction,
  facts: PolicyFacts,
): PolicyDecision {
  const rules = rulesFor(policy, action);
  const units = action.units.map((unit) => traceUnit(rules, unit, facts));
  return {
    allowed: units.length > 0 && units.every(({ outcome }) => outcome === 'allowed'),
    policy_id: policy.id,
    method: action.method,
    units,
  };
}

/**
 * Returns whether a policy allows an action. Equals `evaluatePolicy(…).allowed`, but builds no trace and stops as
 * soon as the decision is certain. Never throws because of the action's content either.
 */
export function allowsAction(policy: CompiledPolicy, action: PolicyAction, facts: PolicyFacts): boolean {
  return action.units.length > 0 && findDeniedUnit(policy, action, facts) === undefined;
}

/** Returns the first unit that a policy does not allow, or undefined if it allows all. */
export function findDeniedUnit(
  policy: CompiledPolicy,
  action: PolicyAction,
  facts: PolicyFacts,
): ActionUnit | undefined {
  const rules = rulesFor(policy, action);
  return action.units.find((unit) => !allowsUnit(rules, unit, facts));
}

function allowsUnit(rules: readonly CompiledRule[], unit: ActionUnit, facts: PolicyFacts): boolean {
  const readField = createFieldReader(unit, facts);
  let isAllowed = false;
  for (const rule of rules) {
    if (rule.action === 'ALLOW') isAllowed ||= matchesUnit(rule, readField, facts);
    else if (matchesUnit(rule, readField, facts)) return false;
  }
  return isAllowed;
}

/** Returns what `ruleMatches` returns, but stops at the first condition that is not satisfied. */
function matchesUnit(
  { action, conditions }: CompiledRule,
  readField: ReadField,
  facts: PolicyFacts,
): boolean {
  return conditions.every((condition) => {
    const truth = truthOf(condition, readField(condition), action, facts);
    return truth === 'true' || (truth === 'unknown' && action === 'DENY');
  });
}

/** A decision without its trace. */
export interface ImpliedDecision {
  readonly allowed: boolean;
  readonly units: readonly Pick<UnitTrace, 'unit' | 'outcome' | 'deciding_rule_id'>[];
}

/** Derives the decision from the conditions' results in the trace. Ignores the outcomes that the trace contains. */
export function decisionOf(trace: Pick<PolicyDecision, 'units'>): ImpliedDecision {
  const units = trace.units.map(({ unit, rules }) => ({
    unit,
    ...outcomeOf(rules.map((rule) => ({ ...rule, matched: ruleMatches(rule.action, rule.conditions) }))),
  }));
  return { allowed: units.length > 0 && units.every(({ outcome }) => outcome === 'allowed'), units };
}

/** A value whose membership in a condition set the caller must read before evaluation. */
export interface SetLookup {
  readonly conditionSetId: string;
  readonly candidates: readonly SetCandidate[];
}

/** Collects the condition-set memberships that the evaluation of this action needs. */
export function collectLookups(
  policy: CompiledPolicy,
  action: PolicyAction,
  nowMs: number,
): readonly SetLookup[] {
  const facts: PolicyFacts = { nowMs, inConditionSet: () => undefined, aggregation: () => undefined };
  const sets = new Map<string, Map<string, SetCandidate>>();
  for (const condition of rulesFor(policy, action).flatMap((rule) => rule.setConditions)) {
    const candidates = sets.get(condition.conditionSetId) ?? new Map<string, SetCandidate>();
    sets.set(condition.conditionSetId, candidates);
    for (const unit of action.units) {
      const observed = condition.observe(unit, facts);
      for (const value of observed.state === 'present' ? observed.values : []) {
        const candidate = condition.candidate(value);
        candidates.set(setCandidateKey(candidate), candidate);
      }
    }
  }
  return [...sets].map(([conditionSetId, candidates]) => ({
    conditionSetId,
    candidates: [...candidates.values()],
  }));
}
