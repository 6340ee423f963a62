import type { ActionUnit, PolicyAction, PolicyFacts, SetCandidate } from './action.ts';
import type { CompiledCondition, CompiledPolicy, CompiledRule } from './compile.ts';
import { setCandidateKey } from './operators.ts';
import type { Observation } from './values.ts';

/** `unknown`: the condition could not be judged; see README, "Absence and errors". */
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
  readonly rules: readonly RuleTrace[];
  readonly outcome: 'allowed' | 'denied_by_rule' | 'no_rule_for_method' | 'no_rule_matched';
  /** The rule that decided, when one did. */
  readonly deciding_rule_id: string | null;
}

/** A decision and everything it was made from; `decisionOf` gives the same decision again. */
export interface PolicyDecision {
  readonly allowed: boolean;
  readonly policy_id: string;
  readonly method: string;
  readonly units: readonly UnitTrace[];
}

/** The rules that a request of this method is judged by. */
export function rulesFor(policy: CompiledPolicy, method: string): readonly CompiledRule[] {
  return policy.rules.filter((rule) => rule.method === method || rule.method === '*');
}

/** An ALLOW needs every observed value to satisfy it; a DENY is met by one. A value that cannot be judged makes the rest moot. */
function judgeAll(
  condition: CompiledCondition,
  values: readonly string[],
  action: 'ALLOW' | 'DENY',
  facts: PolicyFacts,
): Truth {
  // A set that is gone holds nothing (behaviour of the published service): false, not unknown.
  const isMet = (value: string): boolean => condition.judge(value, facts) === true;
  return (action === 'ALLOW' ? values.every(isMet) : values.some(isMet)) ? 'true' : 'false';
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

type See = (condition: CompiledCondition) => Observation;

/** Reads each field of a unit once, however many conditions ask for it. */
export function seeOnce(unit: ActionUnit, facts: PolicyFacts): See {
  const seen = new Map<CompiledCondition['observe'], Observation>();
  return ({ observe }) => {
    const before = seen.get(observe);
    if (before !== undefined) return before;
    const observed = observe(unit, facts);
    seen.set(observe, observed);
    return observed;
  };
}

function traceCondition(
  condition: CompiledCondition,
  see: See,
  action: 'ALLOW' | 'DENY',
  facts: PolicyFacts,
): ConditionTrace {
  const observed = see(condition);
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

/** Kleene's AND over the conditions; what stays unknown matches a DENY and never an ALLOW: fail closed. */
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

function traceUnit(rules: readonly CompiledRule[], unit: ActionUnit, facts: PolicyFacts): UnitTrace {
  const see = seeOnce(unit, facts);
  const traces = rules.map((rule): RuleTrace => {
    const conditions = rule.conditions.map((condition) => traceCondition(condition, see, rule.action, facts));
    return {
      rule_id: rule.id,
      rule_name: rule.name,
      action: rule.action,
      method: rule.method,
      conditions,
      matched: ruleMatches(rule.action, conditions),
    };
  });
  return { unit: unit.label, rules: traces, ...outcomeOf(traces) };
}

/**
 * Judges an action under a policy. Never throws for anything the action holds: what cannot be read is `unknown`.
 * Allowed only when every unit has an ALLOW and none a DENY; an action without units is denied.
 */
export function evaluatePolicy(
  policy: CompiledPolicy,
  action: PolicyAction,
  facts: PolicyFacts,
): PolicyDecision {
  const rules = rulesFor(policy, action.method);
  const units = action.units.map((unit) => traceUnit(rules, unit, facts));
  return {
    allowed: units.length > 0 && units.every(({ outcome }) => outcome === 'allowed'),
    policy_id: policy.id,
    method: action.method,
    units,
  };
}

/**
 * Whether a policy allows an action: `evaluatePolicy(…).allowed` without its trace, in a fraction of the time. It ends
 * where the rest can change nothing, and never throws either.
 */
export function allowsAction(policy: CompiledPolicy, action: PolicyAction, facts: PolicyFacts): boolean {
  const rules = rulesFor(policy, action.method);
  return action.units.length > 0 && action.units.every((unit) => allowsUnit(rules, unit, facts));
}

function allowsUnit(rules: readonly CompiledRule[], unit: ActionUnit, facts: PolicyFacts): boolean {
  const see = seeOnce(unit, facts);
  let isAllowed = false;
  for (const rule of rules) {
    if (rule.action === 'ALLOW') isAllowed ||= matchesUnit(rule, see, facts);
    else if (matchesUnit(rule, see, facts)) return false;
  }
  return isAllowed;
}

/** `ruleMatches`, up to the first condition that rules it out. */
function matchesUnit({ action, conditions }: CompiledRule, see: See, facts: PolicyFacts): boolean {
  return conditions.every((condition) => {
    const truth = truthOf(condition, see(condition), action, facts);
    return truth === 'true' || (truth === 'unknown' && action === 'DENY');
  });
}

/** A decision without what it was made from. */
export interface ImpliedDecision {
  readonly allowed: boolean;
  readonly units: readonly Pick<UnitTrace, 'unit' | 'outcome' | 'deciding_rule_id'>[];
}

/** The decision that a trace implies, from its conditions' results alone: nothing that was concluded is believed. */
export function decisionOf(trace: Pick<PolicyDecision, 'units'>): ImpliedDecision {
  const units = trace.units.map(({ unit, rules }) => ({
    unit,
    ...outcomeOf(rules.map((rule) => ({ ...rule, matched: ruleMatches(rule.action, rule.conditions) }))),
  }));
  return { allowed: units.length > 0 && units.every(({ outcome }) => outcome === 'allowed'), units };
}

/** What evaluation will ask of a condition set: read it first, then evaluate with the answers. */
export interface SetLookup {
  readonly conditionSetId: string;
  readonly candidates: readonly SetCandidate[];
}

/** Collects the condition-set memberships that evaluating this action would consult. */
export function collectLookups(
  policy: CompiledPolicy,
  action: PolicyAction,
  nowMs: number,
): readonly SetLookup[] {
  const facts: PolicyFacts = { nowMs, inConditionSet: () => undefined, aggregation: () => undefined };
  const sets = new Map<string, Map<string, SetCandidate>>();
  for (const condition of rulesFor(policy, action.method).flatMap((rule) => rule.setConditions)) {
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
