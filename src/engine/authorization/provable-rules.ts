import { LRUCache } from 'lru-cache';
import type { PolicyAction, PolicyFacts } from '../policy/action.ts';
import { exceedsComparisonLimit } from '../policy/comparison-limit.ts';
import { type CompiledPolicy, compilePolicy, type RuleInput } from '../policy/compile.ts';
import type { ConditionInput } from '../policy/condition-source.ts';
import { allowsAction } from '../policy/evaluate.ts';
import type { PolicyContent } from './policy-seals.ts';
import { UnauthorizedUseError } from './signed-evidence.ts';

/** An action as far as it can be derived from the signed data. */
export interface KnownAction {
  readonly action: PolicyAction;
  readonly unknown: UnknownContent;
}

/** The unknown part of an action: its whole content, or only these fields of its request. */
export type UnknownContent = 'all' | readonly string[];

/**
 * Reduces rules to the conditions that can be evaluated without data that only a server has: members of condition
 * sets, running totals, and the content of an action that the server builds. Conditions on such data are removed from
 * ALLOW rules, and DENY rules with such a condition are left out.
 *
 * INVARIANT: the returned rules allow every action that the given rules allow, whatever the unknown data are.
 */
export function provableRules(rules: readonly RuleInput[], unknown: UnknownContent): readonly RuleInput[] {
  return rules.flatMap((rule) => {
    const isJudged = (condition: ConditionInput): boolean => isJudgedIn(rule, condition, unknown);
    if (rule.action === 'DENY') return rule.conditions.every(isJudged) ? [rule] : [];
    return [{ ...rule, conditions: rule.conditions.filter(isJudged) }];
  });
}

function isJudgedIn(
  { action }: RuleInput,
  { field_source: source, field, operator }: ConditionInput,
  unknown: UnknownContent,
): boolean {
  // In an ALLOW rule, the condition remains: a field can only be in a condition set if it is present.
  if (operator === 'in_condition_set' && action === 'DENY') return false;
  if (source === 'system') return true;
  if (unknown === 'all' || source === 'reference') return false;
  return source !== 'action_request_body' || !unknown.includes(field);
}

/** A policy whose content its owner has signed. */
export interface AgreedPolicy {
  /** JSON of the `PolicyContent`. */
  readonly content: string;
  readonly digest: string;
}

const compiled = new LRUCache<string, CompiledPolicy>({ max: 500 });

/**
 * Requires that the policy allows the action, whatever the unknown data are.
 *
 * @throws UnauthorizedUseError
 */
export function requireAllowed(agreed: AgreedPolicy, { action, unknown }: KnownAction, nowMs: number): void {
  const policy = compiledPolicy(agreed, unknown);
  // Every value counts as a member of the condition sets of ALLOW rules. DENY rules with condition sets are left out.
  const facts: PolicyFacts = { nowMs, inConditionSet: () => true, aggregation: () => undefined };
  if (!exceedsComparisonLimit(policy, action, nowMs) && allowsAction(policy, action, facts)) return;
  throw new UnauthorizedUseError(`the policy \`${policy.id}\` does not allow this signature`);
}

function compiledPolicy({ content, digest }: AgreedPolicy, unknown: UnknownContent): CompiledPolicy {
  const key = `${digest} ${unknown}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const { id, chainType, rules } = JSON.parse(content) as PolicyContent;
  const policy = compilePolicy({ id, chain_type: chainType, rules: provableRules(rules, unknown) });
  compiled.set(key, policy);
  return policy;
}
