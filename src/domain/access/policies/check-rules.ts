import { ApiError } from '../../../errors.ts';
import type { PolicyRuleRequest, PolicyRuleResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type CompiledRule, compileRule, refuseUnseenValues } from '../../../policy/compile.ts';
import { referencedAggregation } from '../../../policy/conditions/reference.ts';
import { PolicyFormatError } from '../../../policy/policy-format-error.ts';
import type { ConditionInput } from '../../../policy/source.ts';
import { AggregationEntity } from '../aggregations/aggregation.entity.ts';
import { ConditionSetEntity } from '../condition-sets/condition-set.entity.ts';

/** CHOICE: no limit is published; a policy is read and evaluated as a whole, so it stays small. */
const MAX_RULES = 100;
/**
 * CHOICE: the length of a policy's rules as JSON, as much as one request can carry. Rules added one by one share this
 * limit, because policies are cached in compiled form.
 */
const MAX_RULES_LENGTH = 1024 * 1024;

function malformed(pointer: string, message: string, cause?: unknown): ApiError {
  return new ApiError('invalid_policy_format', `${pointer}: ${message}`, {
    cause,
    data: { issues: [{ in: 'body', pointer, message }] },
  });
}

/**
 * Refuses invalid rules before they are stored: every field, operator, value, ABI and type map must resolve, and the
 * condition sets and aggregations they name must exist.
 *
 * @param pointerOf JSON pointer to the rule of this index in the body.
 * @throws ApiError invalid_policy_format that names the fault.
 */
export async function checkRules(
  context: Pick<OperationContext, 'app' | 'em'>,
  rules: readonly PolicyRuleRequest[],
  chainType: string,
  pointerOf: (index: number) => string,
): Promise<void> {
  checkRuleCount(rules.length);
  for (const [index, rule] of rules.entries()) {
    const compiled = compile(rule, chainType, pointerOf(index));
    await checkReferences(context, compiled, pointerOf(index));
  }
}

/** @throws ApiError invalid_policy_format when a policy would have too many rules. */
export function checkRuleCount(count: number): void {
  if (count > MAX_RULES) throw malformed('/rules', `expected at most ${MAX_RULES} rules, got ${count}`);
}

/** @throws ApiError invalid_policy_format when a policy would have too many rules, or too long ones. */
export function checkPolicySize(rules: readonly PolicyRuleResponse[]): void {
  checkRuleCount(rules.length);
  const { length } = JSON.stringify(rules);
  if (length <= MAX_RULES_LENGTH) return;
  throw malformed('/rules', `expected at most ${MAX_RULES_LENGTH} characters of rules, got ${length}`);
}

function compile(rule: PolicyRuleRequest, chainType: string, pointer: string): CompiledRule {
  try {
    const conditions = rule.conditions as unknown as readonly ConditionInput[];
    const compiled = compileRule({ ...rule, id: '', conditions }, chainType);
    refuseUnseenValues(compiled);
    return compiled;
  } catch (error) {
    if (error instanceof PolicyFormatError) throw malformed(pointer + error.pointer, error.message, error);
    throw error;
  }
}

async function checkReferences(
  context: Pick<OperationContext, 'app' | 'em'>,
  rule: CompiledRule,
  pointer: string,
): Promise<void> {
  for (const [index, condition] of rule.conditions.entries()) {
    const { conditionSetId, input } = condition;
    if (conditionSetId !== undefined && !(await hasConditionSet(context, conditionSetId))) {
      throw malformed(`${pointer}/conditions/${index}/value`, `no condition set \`${conditionSetId}\``);
    }
    const aggregationId = input.field_source === 'reference' ? referencedAggregation(input.field) : undefined;
    if (aggregationId !== undefined && !(await hasAggregation(context, aggregationId))) {
      throw malformed(`${pointer}/conditions/${index}/field`, `no aggregation \`${aggregationId}\``);
    }
  }
}

type ReadContext = Pick<OperationContext, 'app' | 'em'>;

async function hasConditionSet({ app, em }: ReadContext, id: string): Promise<boolean> {
  return (await em.count(ConditionSetEntity, { id, appId: app.id })) > 0;
}

async function hasAggregation({ app, em }: ReadContext, id: string): Promise<boolean> {
  return (await em.count(AggregationEntity, { id, appId: app.id })) > 0;
}
