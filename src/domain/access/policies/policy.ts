import { hash } from 'node:crypto';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import { type CompiledRule, compileRule, refuseUnseenValues } from '../../../engine/policy/compile.ts';
import { PolicyFormatError } from '../../../engine/policy/condition-source.ts';
import { requireFewFunctions } from '../../../engine/policy/conditions/abi-calldata.ts';
import { referencedAggregation } from '../../../engine/policy/conditions/reference.ts';
import { strictly } from '../../../engine/policy/strict-methods.ts';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type {
  CreatePolicyRequest,
  PolicyRuleRequest,
  PolicyRuleResponse,
  UpdatePolicyRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { readSafeguards } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { AggregationEntity } from '../aggregations/aggregation.entity.ts';
import { ConditionSetEntity } from '../condition-sets/condition-set.entity.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { type Authorization, requireAuthorization } from '../owners/require-authorization.ts';
import {
  findPolicy,
  findPolicyForUpdate,
  readPolicy,
  requirePartsAfterUpdate,
  requirePartsOfOwner,
  type StoredPolicy,
} from './find-policy.ts';
import { PolicyEntity } from './policy.entity.ts';
import { changePolicySeal, deletePolicySeal, sealPolicy } from './policy-seals.ts';

/**
 * CHOICE: the maximum number of rules of a policy. The specification gives none. A policy is read and evaluated as a
 * whole, so it has to stay small.
 */
const MAX_RULES = 100;
/**
 * CHOICE: the maximum length of a policy's rules as JSON is the maximum length of one request. Rules that are added one
 * by one share this limit, because policies are cached in compiled form.
 */
const MAX_RULES_LENGTH = 1024 * 1024;

function malformed(pointer: string, message: string, cause?: unknown): ApiError {
  return new ApiError('invalid_policy_format', `${pointer}: ${message}`, {
    cause,
    data: { issues: [{ in: 'body', pointer, message }] },
  });
}

/**
 * Refuses invalid rules before they are stored. Every field, operator, value, ABI and type map must resolve, and the
 * named condition sets and aggregations must exist.
 *
 * @param pointerOf returns the JSON pointer in the body to the rule with this index.
 * @throws ApiError invalid_policy_format that names the fault.
 */
export async function checkRules(
  context: Pick<OperationContext, 'app' | 'em'>,
  rules: readonly PolicyRuleRequest[],
  chainType: string,
  pointerOf: (index: number) => string,
): Promise<void> {
  checkRuleCount(rules.length);
  checkFunctions(rules);
  for (const [index, rule] of rules.entries()) {
    const compiled = compile(rule, chainType, pointerOf(index));
    await checkReferences(context, compiled, pointerOf(index));
  }
}

/**
 * Refuses more rules than a policy may have.
 *
 * @throws ApiError invalid_policy_format
 */
export function checkRuleCount(count: number): void {
  if (count > MAX_RULES) throw malformed('/rules', `expected at most ${MAX_RULES} rules, got ${count}`);
}

/**
 * Refuses rules whose ABIs have more functions in total than a policy may have.
 *
 * @throws ApiError invalid_policy_format
 */
function checkFunctions(rules: readonly PolicyRuleRequest[]): void {
  const conditions = rules.flatMap((rule) => [...rule.conditions]);
  try {
    requireFewFunctions(conditions.map((condition) => ('abi' in condition ? { abi: condition.abi } : {})));
  } catch (error) {
    if (error instanceof PolicyFormatError) throw malformed('/rules', error.message, error);
    throw error;
  }
}

/**
 * Refuses too many rules and rules that are too long in total.
 *
 * @throws ApiError invalid_policy_format
 */
function checkPolicySize(rules: readonly PolicyRuleResponse[]): void {
  checkRuleCount(rules.length);
  checkFunctions(rules);
  const { length } = JSON.stringify(rules);
  if (length <= MAX_RULES_LENGTH) return;
  throw malformed('/rules', `expected at most ${MAX_RULES_LENGTH} characters of rules, got ${length}`);
}

function compile(rule: PolicyRuleRequest, chainType: string, pointer: string): CompiledRule {
  try {
    const conditions = rule.conditions;
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

/** Gives new ids to the rules of a request, and returns the rules with their members in wire order. */
function withIds(
  { ids }: Pick<OperationContext, 'ids'>,
  rules: readonly PolicyRuleRequest[],
): PolicyRuleResponse[] {
  return rules.map((rule) => withId(ids.cuid2(), rule));
}

/** Returns a rule with the given id, whatever id the input has. */
function withId(id: string, { name, method, action, conditions }: PolicyRuleRequest): PolicyRuleResponse {
  return { id, name, method, action, conditions };
}

/** Returns the properties of the entity that store the rules. */
function documentOf(rules: readonly PolicyRuleResponse[]): { rules: string; rulesDigest: string } {
  const text = JSON.stringify(rules);
  return { rules: text, rulesDigest: hash('sha256', text, 'base64') };
}

/**
 * Creates a policy for wallets of one chain type.
 *
 * @throws ApiError invalid_policy_format for invalid rules, invalid_data when the owner does not exist, and what
 * `requirePartsOfOwner` throws.
 */
export async function createPolicy(
  context: OperationContext,
  input: CreatePolicyRequest,
): Promise<StoredPolicy> {
  const ownerId = (await resolveOwner(context, input)) ?? null;
  await checkRules(context, input.rules, input.chain_type, (index) => `/rules/${index}`);
  await requirePartsOfOwner(context, ownerId, input.rules, (index, place) => `/rules/${index}${place}`);
  const policy = context.em.create(PolicyEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    name: input.name,
    chainType: input.chain_type,
    ...documentOf(withIds(context, input.rules)),
    revision: 0,
    ownerId,
    createdAtMs: context.nowMs,
  });
  await context.em.flush();
  const created = readPolicy(policy);
  await sealPolicy(context, created);
  return created;
}

/**
 * Updates a policy. Requires the owner's authorization. Given rules replace all existing rules and get new ids. A
 * `null` owner removes the owner.
 *
 * @throws ApiError not_found, invalid_data, invalid_policy_format, and what `requireAuthorization` and
 * `requirePartsAfterUpdate` throw.
 */
export async function updatePolicy(
  context: OperationContext,
  id: string,
  change: UpdatePolicyRequest,
): Promise<StoredPolicy> {
  const before = await findPolicyForUpdate(context, id);
  const authorization = await requireAuthorization(context, { ownerId: before.ownerId });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const ownerId = await resolveOwner(context, change);
  if (change.rules !== undefined) {
    await checkRules(context, change.rules, before.chainType, (index) => `/rules/${index}`);
  }
  await requirePartsAfterUpdate(context, before, change, ownerId);
  const fields = {
    name: change.name ?? before.name,
    ownerId: ownerId === undefined ? before.ownerId : ownerId,
    rules: change.rules === undefined ? before.rules : withIds(context, change.rules),
  };
  return storePolicy(context, before, fields, authorization);
}

/**
 * Stores a changed policy. Its cached compilation becomes outdated, and pending intents about the policy are
 * dismissed.
 */
async function storePolicy(
  context: OperationContext,
  before: StoredPolicy,
  change: { name?: string; ownerId?: string | null; rules?: readonly PolicyRuleResponse[] },
  authorization: Authorization,
): Promise<StoredPolicy> {
  const { em } = context;
  // The entity is already in the identity map, because `findPolicyForUpdate` has loaded it.
  const policy = await em.findOneOrFail(PolicyEntity, { id: before.id });
  policy.name = change.name ?? policy.name;
  if (change.ownerId !== undefined) policy.ownerId = change.ownerId;
  if (change.rules !== undefined) Object.assign(policy, documentOf(change.rules));
  policy.revision += 1;
  await em.flush();
  await dismissIntentsAbout(context, { resource: 'policy', id: policy.id, change: 'changed' });
  const after = readPolicy(policy);
  await changePolicySeal(context, before, after, authorization);
  return after;
}

/**
 * Deletes a policy that no wallet or signer uses. Requires the owner's authorization.
 *
 * @throws ApiError not_found, invalid_state while it is in use, and what `requireAuthorization` throws.
 */
export async function deletePolicy(context: OperationContext, id: string): Promise<void> {
  const policy = await findPolicyForUpdate(context, id);
  await requireAuthorization(context, { ownerId: policy.ownerId });
  // CHOICE: a policy in use is not deleted, because its wallets would then have no policy.
  if (await isInUse(context, id)) {
    throw new ApiError(
      'invalid_state',
      'the policy cannot be deleted: a wallet or one of its signers uses it',
    );
  }
  await deletePolicySeal(context, id);
  await context.em.nativeDelete(PolicyEntity, { id });
  await dismissIntentsAbout(context, { resource: 'policy', id, change: 'deleted' });
}

/**
 * Returns whether a wallet or an additional signer uses the policy.
 *
 * KYSELY: reads `wallets`, whose entity belongs to a higher layer.
 */
async function isInUse({ em }: Pick<OperationContext, 'em'>, id: string): Promise<boolean> {
  const database = em.getKysely<Tables>();
  const wallet = await database
    .selectFrom('wallets')
    .select('id')
    .where('policy_id', '=', id)
    .limit(1)
    .executeTakeFirst();
  if (wallet !== undefined) return true;
  const signer = await database
    .selectFrom('wallet_signers')
    .select('wallet_id')
    .where('override_policy_id', '=', id)
    .limit(1)
    .executeTakeFirst();
  return signer !== undefined;
}

/** CHOICE: where a rule is the whole body, JSON pointers start at the body's root. */
const AT_ROOT = () => '';
const fromRoot = (_: number, place: string): string => place;

function requireRule(policy: StoredPolicy, ruleId: string): PolicyRuleResponse {
  const rule = policy.rules.find(({ id }) => id === ruleId);
  if (rule === undefined) throw notFound('Rule');
  return rule;
}

/**
 * Finds one rule of a policy.
 *
 * @throws ApiError not_found
 */
export async function findPolicyRule(
  context: Pick<OperationContext, 'app' | 'em'>,
  policyId: string,
  ruleId: string,
): Promise<PolicyRuleResponse> {
  return requireRule(await findPolicy(context, policyId), ruleId);
}

/**
 * Appends a rule to a policy. Requires the owner's authorization.
 *
 * @throws ApiError not_found, invalid_policy_format, and what `requireAuthorization` and `requirePartsOfOwner` throw.
 */
export async function createPolicyRule(
  context: OperationContext,
  policyId: string,
  input: PolicyRuleRequest,
): Promise<PolicyRuleResponse> {
  const policy = await findPolicyForUpdate(context, policyId);
  const authorization = await requireAuthorization(context, { ownerId: policy.ownerId });
  await checkRules(context, [input], policy.chainType, AT_ROOT);
  await requirePartsOfOwner(context, policy.ownerId, [input], fromRoot);
  const rule = withId(context.ids.cuid2(), input);
  const rules = [...policy.rules, rule];
  checkPolicySize(rules);
  await storePolicy(context, policy, { rules }, authorization);
  return rule;
}

/**
 * Replaces a rule, which keeps its id and position. Requires the owner's authorization.
 *
 * @throws ApiError not_found, invalid_policy_format, and what `requireAuthorization` and `requirePartsOfOwner` throw.
 */
export async function updatePolicyRule(
  context: OperationContext,
  policyId: string,
  ruleId: string,
  input: PolicyRuleRequest,
): Promise<PolicyRuleResponse> {
  const policy = await findPolicyForUpdate(context, policyId);
  const authorization = await requireAuthorization(context, { ownerId: policy.ownerId });
  requireRule(policy, ruleId);
  await checkRules(context, [input], policy.chainType, AT_ROOT);
  await requirePartsOfOwner(context, policy.ownerId, [input], fromRoot);
  const rule = withId(ruleId, input);
  const rules = policy.rules.map((other) => (other.id === ruleId ? rule : other));
  checkPolicySize(rules);
  await storePolicy(context, policy, { rules }, authorization);
  return rule;
}

/**
 * Removes a rule. Requires the owner's authorization.
 *
 * @throws ApiError not_found, and what `requireAuthorization` throws.
 */
export async function deletePolicyRule(
  context: OperationContext,
  policyId: string,
  ruleId: string,
): Promise<void> {
  const policy = await findPolicyForUpdate(context, policyId);
  const authorization = await requireAuthorization(context, { ownerId: policy.ownerId });
  requireRule(policy, ruleId);
  const rules = policy.rules.filter(({ id }) => id !== ruleId);
  await storePolicy(context, policy, { rules }, authorization);
}

/**
 * Returns the action in the form that the app's policies evaluate. With the safeguard `strict_methods`, this is the
 * result of `strictly`.
 */
export async function actionToEvaluate(
  context: Pick<OperationContext, 'app' | 'em' | 'notes' | 'safeguards'>,
  action: PolicyAction,
): Promise<PolicyAction> {
  const strict = strictly(action);
  if (strict === action) return action;
  const { strict_methods: isStrict } = await readSafeguards(context);
  return isStrict ? strict : action;
}
