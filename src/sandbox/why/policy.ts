import { type AmountUnit, amountText, unitOf } from '../../engine/assets/amount-units.ts';
import type { ConditionTrace, PolicyDecision, RuleTrace, UnitTrace } from '../../engine/policy/evaluate.ts';
import type { Problem, RefusedRequest, Why } from '../../ports/refusals.ts';
import { because, capital, namedId, problem, quote } from './problem.ts';

const MAX_RULES = 5;

/** Explains a denial by a policy: the rules and the conditions that decided. */
export function whyPolicy(refused: RefusedRequest): Why | undefined {
  const { code, data } = refused;
  const decision = data.decision as PolicyDecision | undefined;
  if (code !== 'policy_violation' || decision === undefined) return undefined;
  const unit = deniedUnit(decision);
  if (unit === undefined) return undefined;
  const traceId = typeof data.trace_id === 'string' ? data.trace_id : null;
  return because('policy', problemsOf(unit, decision, refused), {
    evidence: {
      policy_id: decision.policy_id,
      method: decision.method,
      outcome: unit.outcome,
      deciding_rule_id: unit.deciding_rule_id,
      trace_id: traceId,
    },
    repairs:
      traceId === null
        ? []
        : [
            {
              kind: 'call',
              title: 'Show how each rule was evaluated',
              operation: 'getPolicyTrace',
              path: { trace_id: traceId },
            },
          ],
  });
}

/** Returns why a policy denies a request, or an empty list if it allows it. */
export function problemsOfDenial(decision: PolicyDecision, refused: RefusedRequest): readonly Problem[] {
  const unit = deniedUnit(decision);
  return unit === undefined ? [] : problemsOf(unit, decision, refused);
}

function deniedUnit({ units }: PolicyDecision): UnitTrace | undefined {
  return units.find(({ outcome }) => outcome !== 'allowed');
}

function problemsOf(
  unit: UnitTrace,
  { policy_id: id, method }: PolicyDecision,
  refused: RefusedRequest,
): Problem[] {
  const { outcome, rules, deciding_rule_id: ruleId } = unit;
  const subject = `policy ${namedId(id, refused)}`;
  if (outcome === 'denied_by_rule') {
    const rule = rules.find(({ rule_id: each }) => each === ruleId);
    const name = quote(rule?.rule_name ?? ruleId ?? '');
    const seen = rule?.conditions
      .map((each) => `\`${nameOf(each)}\` is ${seenOf(each, unitIn(each, rule.conditions, refused))}`)
      .join(', ');
    const when = seen === undefined || seen === '' ? '' : ` when ${seen}`;
    return [
      problem({
        subject,
        expected: `a request that the rule ${name} does not deny`,
        came: `\`${method}\`${when}`,
        text: `${capital(subject)}: the rule ${name} denies \`${method}\`${when}; expected a request that it does not deny.`,
        next: 'Change the request, or the rule that denies it.',
      }),
    ];
  }
  const failed =
    outcome === 'no_rule_for_method'
      ? []
      : rules.filter(({ action }) => action === 'ALLOW').flatMap((rule) => failureOf(rule, subject, refused));
  if (failed.length > 0) return failed.slice(0, MAX_RULES);
  return [
    problem({
      subject,
      expected: `a rule that allows the method \`${method}\``,
      came: 'no such rule',
      next: `Add a rule for \`${method}\` to the policy, or use a method that it allows.`,
    }),
  ];
}

/** Returns the first condition that keeps a rule from matching, as a problem. */
function failureOf(
  { rule_name: name, conditions }: RuleTrace,
  policy: string,
  refused: RefusedRequest,
): Problem[] {
  const condition = conditions.find(({ result }) => result !== 'true');
  if (condition === undefined) return [];
  const unit = unitIn(condition, conditions, refused);
  const wanted = `${subjectOf(condition, refused)} ${wantedOf(condition, refused, unit)}`;
  const { observed } = condition;
  const seen =
    observed.state === 'absent'
      ? `the request has no such value (${observed.reason})`
      : `it is ${seenOf(condition, unit)}`;
  return [
    problem({
      subject: `${policy}, rule ${quote(name)}`,
      expected: wanted,
      came: seenOf(condition, unit),
      text: `${capital(policy)}: the rule ${quote(name)} requires ${wanted}, and ${seen}.`,
      next: nextOf(condition),
    }),
  ];
}

function nameOf({ field_source: source, field }: ConditionTrace): string {
  return `${source}.${field}`;
}

/** Quotes a value, with the amount in whole units before it if it is one: 1.5 USDC (`1500000`). */
function quoteAmount(value: string, unit: AmountUnit | undefined): string {
  const base = HEX_NUMBER.test(value) ? String(BigInt(value)) : value;
  const amount = unit === undefined ? undefined : amountText(base, unit);
  return amount === undefined ? quote(value) : `${amount} ${unit!.symbol} (${quote(value)})`;
}

const HEX_NUMBER = /^0x[0-9a-f]{1,64}$/i;

/** Returns the unit of the amount that a condition compares. The request and the other conditions name the asset. */
function unitIn(
  condition: ConditionTrace,
  others: readonly ConditionTrace[],
  refused: RefusedRequest,
): AmountUnit | undefined {
  const { field } = condition;
  if (field.startsWith(AGGREGATION)) return refused.resources?.units?.get(field.slice(AGGREGATION.length));
  const { caip2, params } = (refused.body ?? {}) as {
    readonly caip2?: unknown;
    readonly params?: { readonly transaction?: { readonly chain_id?: unknown; readonly to?: unknown } };
  };
  const { chain_id: chainId, to } = params?.transaction ?? {};
  const onEvm = typeof caip2 === 'string' && caip2.startsWith('eip155:') ? caip2.slice(EVM.length) : chainId;
  const sent = Object.entries({ chain_id: onEvm, to }).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number'
      ? [{ field_source: 'ethereum_transaction', field: name, operator: 'eq', value: numberText(value) }]
      : [],
  );
  return unitOf(condition, [...sent, ...others]);
}

const EVM = 'eip155:';

/** Writes a number in decimal. A text that is an address stays as it is. */
function numberText(value: string | number): string {
  const text = String(value);
  return text.length < ADDRESS_LENGTH && HEX_NUMBER.test(text) ? String(BigInt(text)) : text;
}

const ADDRESS_LENGTH = 42;
const AGGREGATION = 'aggregation.';

/** Returns what a condition compares, in words. A sum is named by its aggregation. */
function subjectOf(condition: ConditionTrace, refused: RefusedRequest): string {
  const { field } = condition;
  return field.startsWith(AGGREGATION)
    ? `the sum ${namedId(field.slice(AGGREGATION.length), refused)}, which counts this request,`
    : `\`${nameOf(condition)}\``;
}

function nextOf({ field, operator }: ConditionTrace): string {
  if (field.startsWith(AGGREGATION))
    return 'Send less, wait until earlier amounts leave the window of the sum, or change the rule.';
  return operator === 'in_condition_set'
    ? 'Send a request that the rule allows, or add the value to the condition set.'
    : 'Send a request that the rule allows, or change the rule.';
}

/** How sentences express each operator. Other operators are shown under their own names. */
const words: Readonly<Record<string, string>> = {
  eq: 'to be',
  neq: 'not to be',
  lt: 'to be less than',
  lte: 'to be at most',
  gt: 'to be more than',
  gte: 'to be at least',
  in: 'to be one of',
  in_condition_set: 'to be in the condition set',
  contains: 'to contain',
  starts_with: 'to start with',
  ends_with: 'to end with',
};

const MAX_VALUES = 5;

function wantedOf(
  { operator, value }: ConditionTrace,
  refused: RefusedRequest,
  unit: AmountUnit | undefined,
): string {
  const values = [value].flat();
  const more = values.length > MAX_VALUES ? ` and ${values.length - MAX_VALUES} more` : '';
  const shown = values
    .slice(0, MAX_VALUES)
    .map((each) =>
      operator === 'in_condition_set' ? namedId(each, refused) : quoteAmount(String(each), unit),
    );
  return `${words[operator] ?? operator} ${shown.join(', ')}${more}`;
}

function seenOf({ observed }: ConditionTrace, unit: AmountUnit | undefined): string {
  return observed.state === 'present'
    ? observed.values
        .slice(0, MAX_VALUES)
        .map((each) => quoteAmount(each, unit))
        .join(', ')
    : `${observed.state} (${observed.reason})`;
}
