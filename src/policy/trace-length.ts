import type { ConditionTrace, PolicyDecision, RuleTrace, UnitTrace } from './evaluate.ts';
import type { Observation } from './values.ts';

/** What stands around the texts of a condition, a rule or a unit in JSON, characters. */
const AROUND = 150;
/** How much of what was observed a shortened trace shows. */
const SHOWN = { values: 3, characters: 200 };

/** About how many characters a trace takes as JSON. */
export function traceLength(units: readonly UnitTrace[]): number {
  const known = new Map<Observation, number>();
  const observedLength = (observed: Observation): number => {
    const before = known.get(observed);
    if (before !== undefined) return before;
    const length = observed.state === 'present' ? textLength(observed.values) : observed.reason.length;
    known.set(observed, length);
    return length;
  };
  let length = 0;
  for (const { rules } of units) {
    length += AROUND;
    for (const { conditions } of rules) {
      length += AROUND;
      for (const { value, observed } of conditions) {
        length += AROUND + textLength([value].flat()) + observedLength(observed);
      }
    }
  }
  return length;
}

/** With quotation marks and a comma each. */
function textLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length + 3, 0);
}

/**
 * The same decision with as much of its trace as decides: the first unit that is not allowed, else the first, and of
 * each rule one condition by which it matched or did not. `decisionOf` gives the same decision.
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
    .slice(0, SHOWN.values)
    .map((value) => (value.length > SHOWN.characters ? `${value.slice(0, SHOWN.characters)}…` : value));
  return { ...condition, observed: { state: 'present', values } };
}
