import { unitOf } from '../../../engine/assets/amount-units.ts';
import type {
  PolicyConditionTrace,
  PolicyRuleTrace,
  PolicyTrace,
  PolicyUnitTrace,
} from '../../../sandbox/generated/schemas.ts';
import { Named } from '../parts/copy.tsx';
import { Label } from '../parts/label.tsx';
import { conditionText, observedText } from '../policies/conditions.ts';
import { hrefOf } from '../routes.ts';
import { outcomeText } from '../texts.ts';

/** How each policy evaluated a request: policy, unit, rule, condition, the observed value and the result. */
export function PolicyTree({ trace }: { readonly trace: PolicyTrace }) {
  return (
    <section aria-label="Policy trace">
      {trace.policies === null && <p class="empty">The trace was too large to be stored.</p>}
      <ul class="tree">
        {trace.policies?.map((policy) => (
          <li key={policy.policy_id}>
            <Label tone={policy.allowed ? 'good' : 'bad'}>{policy.allowed ? 'allows' : 'denies'}</Label>{' '}
            policy{' '}
            <Named
              id={policy.policy_id}
              what="the policy's id"
              href={hrefOf('policies', [policy.policy_id])}
            />{' '}
            <span class="method">{policy.method}</span>{' '}
            <a href={hrefOf('policies', [policy.policy_id], { tab: 'test', request: trace.request_id })}>
              Load into the test bench
            </a>
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
    <li class={rule.matched ? '' : 'aside'}>
      <Label tone={!rule.matched ? 'none' : rule.action === 'ALLOW' ? 'good' : 'bad'}>{rule.action}</Label>{' '}
      {rule.rule_name} <span class="quiet">{rule.matched ? 'matched' : 'did not match'}</span>
      {isDeciding && <strong> and decided</strong>}
      <ul class={isDeciding ? 'taken' : ''}>
        {rule.conditions.map((condition, index) => (
          <Condition key={index} condition={condition} others={rule.conditions} />
        ))}
      </ul>
    </li>
  );
}

function Condition({
  condition,
  others,
}: {
  readonly condition: PolicyConditionTrace;
  readonly others: readonly PolicyConditionTrace[];
}) {
  const { field_source: source, observed, result } = condition;
  return (
    <li>
      <span class="quiet">{source}</span> <code>{conditionText(condition, others)}</code>:{' '}
      {observedText(observed, unitOf(condition, others))}{' '}
      <Label tone={result === 'true' ? 'good' : 'bad'}>{result}</Label>
    </li>
  );
}
