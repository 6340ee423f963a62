import type { ConditionTrace, PolicyDecision, RuleTrace, UnitTrace } from './evaluate.ts';
import type { Observation } from './values.ts';

/** The estimated length of the JSON of a condition, a rule or a unit, without its values. */
const JSON_OVERHEAD = 150;
/** Limits on the observed values in a shortened trace. */
const SHORTENED = { values: 3, characters: 200 };

/** Estimates the length of a trace as JSON, in characters. */
export function traceLength(units: readonly UnitTrace[]): number {
  const cache = new Map<Observation, number>();
  const observedLength = (observed: Observation): number => {
    const cached = cache.get(observed);
    if (cached !== undefined) return cached;
    const length = observed.state === 'present' ? textLength(observed.values) : observed.reason.length;
    cache.set(observed, length);
    return length;
  };
  let length = 0;
  for (const { rules } of units) {
    length += JSON_OVERHEAD;
    for (const { conditions } of rules) {
      length += JSON_OVERHEAD;
      for (const { value, observed } of conditions) {
        length += JSON_OVERHEAD + textLength([value].flat()) + observedLength(observed);
      }
    }
  }
  return length;
}

/** Returns the length of the strings in a JSON array: two quotation marks and a comma are added for each. */
function textLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length + 3, 0);
}

/**
 * Reduces a trace to the parts that explain the decision: the first unit that is not allowed (or else the first
 * unit), and for each rule one condition that explains why the rule matched or did not. `decisionOf` derives the same
 * decision from the result.
 */
export function shortenTrace(decision: PolicyDecision): PolicyDecision {
  const deciding = decision.units.find(({ outcome }) => outcome !== 'allowed') ?? decision.units[0];
  const units =
    deciding === undefined ? [] : [{ ...deciding, rules: deciding.rules.map((rule) => shortenRule(rule)) }];
  return { ...decision, units };
}

function shortenRule(rule: RuleTrace): RuleTrace {
  const { action, conditions, matched } = rule;
  const isReason = ({ result }: ConditionTrace): boolean =>
    matched || result === 'false' || (action === 'ALLOW' && result === 'unknown');
  return { ...rule, conditions: conditions.filter(isReason).slice(0, 1).map(shortenCondition) };
}

function shortenCondition(condition: ConditionTrace): ConditionTrace {
  const { observed } = condition;
  if (observed.state !== 'present') return condition;
  const values = observed.values
    .slice(0, SHORTENED.values)
    .map((value) =>
      value.length > SHORTENED.characters ? `${value.slice(0, SHORTENED.characters)}…` : value,
    );
  return { ...condition, observed: { state: 'present', values } };
}
