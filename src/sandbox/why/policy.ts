import type { PolicyDecision, RuleTrace, UnitTrace } from '../../engine/policy/evaluate.ts';
import type { RefusedRequest, Why } from '../../ports/requests.ts';

/** Explains a denial by a policy: the rule and the condition that decided. */
export function whyPolicy({ code, data }: RefusedRequest): Why | undefined {
  const decision = data.decision as PolicyDecision | undefined;
  if (code !== 'policy_violation' || decision === undefined) return undefined;
  const unit = decision.units.find(({ outcome }) => outcome !== 'allowed');
  if (unit === undefined) return undefined;
  return {
    kind: 'policy',
    hint: `policy \`${decision.policy_id}\`: ${reasonOf(unit, decision.method)}`,
    evidence: {
      policy_id: decision.policy_id,
      method: decision.method,
      outcome: unit.outcome,
      deciding_rule_id: unit.deciding_rule_id,
      trace_id: data.trace_id ?? null,
    },
  };
}

function reasonOf({ outcome, rules, deciding_rule_id: id }: UnitTrace, method: string): string {
  if (outcome === 'no_rule_for_method') return `no rule allows the method \`${method}\``;
  if (outcome === 'denied_by_rule') {
    const rule = rules.find(({ rule_id: ruleId }) => ruleId === id);
    return `the rule \`${rule?.rule_name ?? id}\` denies it`;
  }
  const failed = rules.filter(({ action }) => action === 'ALLOW').flatMap(failureOf)[0];
  return failed ?? 'no rule allows it';
}

/** The first condition that keeps a rule from matching. */
function failureOf({ rule_name: name, conditions }: RuleTrace): string[] {
  const condition = conditions.find(({ result }) => result !== 'true');
  if (condition === undefined) return [];
  const { field_source: source, field, operator, value, observed } = condition;
  const seen = observed.state === 'present' ? observed.values.map(quote).join(', ') : observed.state;
  const wanted = Array.isArray(value) ? value.map(quote).join(', ') : quote(String(value));
  return [`the rule \`${name}\` requires \`${source}.${field}\` ${operator} ${wanted}, and it is ${seen}`];
}

function quote(text: string): string {
  return `\`${text.length > 80 ? `${text.slice(0, 80)}…` : text}\``;
}
