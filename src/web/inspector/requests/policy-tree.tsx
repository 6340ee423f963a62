import type {
  PolicyConditionTrace,
  PolicyRuleTrace,
  PolicyTrace,
  PolicyUnitTrace,
} from '../../../sandbox/generated/schemas.ts';
import { hrefOf } from '../routes.ts';
import { observedText, outcomeText } from '../texts.ts';

/** How each policy evaluated a request: policy, unit, rule, condition, the observed value and the result. */
export function PolicyTree({ trace }: { readonly trace: PolicyTrace }) {
  return (
    <section aria-label="Policy trace">
      <h3>Policies</h3>
      {trace.policies === null && <p class="empty">The trace was too large to be stored.</p>}
      <ul class="tree">
        {trace.policies?.map((policy) => (
          <li key={policy.policy_id}>
            <span class={policy.allowed ? 'good' : 'bad'}>{policy.allowed ? 'allows' : 'denies'}</span> policy{' '}
            <a href={hrefOf('policies', [policy.policy_id])}>{policy.policy_id}</a> ({policy.method})
            <UnitList units={policy.units} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The units of a request, each with the rules that were evaluated for it. */
export function UnitList({ units }: { readonly units: readonly PolicyUnitTrace[] }) {
  return (
    <ul>
      {units.map((unit) => (
        <li key={unit.unit}>
          {unit.unit}: {outcomeText(unit)}
          <ul>
            {unit.rules.map((rule) => (
              <Rule key={rule.rule_id} rule={rule} isDeciding={rule.rule_id === unit.deciding_rule_id} />
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function Rule({ rule, isDeciding }: { readonly rule: PolicyRuleTrace; readonly isDeciding: boolean }) {
  return (
    <li>
      <strong>{rule.action}</strong> {rule.rule_name}{' '}
      <span class={rule.matched ? 'good' : 'quiet'}>{rule.matched ? 'matched' : 'did not match'}</span>
      {isDeciding && ' and decided'}
      <ul>
        {rule.conditions.map((condition, index) => (
          <Condition key={index} condition={condition} />
        ))}
      </ul>
    </li>
  );
}

function Condition({ condition }: { readonly condition: PolicyConditionTrace }) {
  const { field_source, field, operator, value, observed, result } = condition;
  return (
    <li>
      <code>
        {field_source}.{field} {operator} {JSON.stringify(value)}
      </code>
      : {observedText(observed)}, <span class={result === 'true' ? 'good' : 'bad'}>{result}</span>
    </li>
  );
}
