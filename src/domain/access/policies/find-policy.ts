import { referencedAggregation } from '../../../engine/policy/conditions/reference.ts';
import { ApiError, invalidField, invalidQuery, notFound } from '../../../errors.ts';
import type {
  Policy,
  PolicyRuleRequest,
  PolicyRuleResponse,
  PolicySummary,
  WalletChainType,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { readSafeguards } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { AggregationEntity } from '../aggregations/aggregation.entity.ts';
import { ConditionSetEntity } from '../condition-sets/condition-set.entity.ts';
import type { OwnerFields } from '../key-quorums/resolve-owner.ts';
import { type PolicyDocument, PolicyEntity } from './policy.entity.ts';

type PolicyContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

export interface StoredPolicy {
  readonly id: string;
  readonly name: string;
  readonly chainType: string;
  readonly rules: readonly PolicyRuleResponse[];
  readonly revision: number;
  readonly ownerId: string | null;
  readonly createdAtMs: number;
}

/** Parses the rules of a stored policy. */
export function readPolicy(document: PolicyDocument): StoredPolicy {
  const { id, name, chainType, revision, ownerId, createdAtMs } = document;
  const rules = JSON.parse(document.rules) as PolicyRuleResponse[];
  return { id, name, chainType, rules, revision, ownerId, createdAtMs };
}

/**
 * Finds a policy of the app.
 *
 * @throws ApiError not_found
 */
export async function findPolicy({ app, em }: PolicyContext, id: string): Promise<StoredPolicy> {
  const document = await em.findOne(PolicyEntity, { id, appId: app.id });
  if (document === null) throw notFound('Policy');
  return readPolicy(document);
}

/** Lists the app's policies with these ids. */
export async function listPoliciesOfIds(
  { app, em }: PolicyContext,
  ids: readonly string[],
): Promise<StoredPolicy[]> {
  if (ids.length === 0) return [];
  return (await em.find(PolicyEntity, { id: { $in: [...ids] }, appId: app.id })).map(readPolicy);
}

/**
 * Lists one page of the app's policies, newest first, without their rules.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not a policy of the app.
 */
export async function listPolicies(
  { app, em }: PolicyContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ policies: Omit<StoredPolicy, 'rules'>[]; nextCursor: string | null }> {
  // A list omits the rules, because the rules of one policy can be a megabyte long.
  const exclude = ['rules'] as const;
  const after =
    cursor === undefined
      ? undefined
      : await em.findOne(PolicyEntity, { id: cursor, appId: app.id }, { exclude });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const where = { appId: app.id };
  const { page, nextCursor } = await findPage(em, PolicyEntity, where, { after, limit, exclude });
  return { policies: page, nextCursor };
}

/**
 * Finds a policy, and locks it until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findPolicyForUpdate({ app, em }: PolicyContext, id: string): Promise<StoredPolicy> {
  const document = await em.findOne(PolicyEntity, { id, appId: app.id }, lockForUpdate);
  if (document === null) throw notFound('Policy');
  return readPolicy(document);
}

/** Converts a policy to wire form. */
export function policyView(policy: StoredPolicy): Policy {
  return { ...policySummaryView(policy), rules: [...policy.rules] };
}

/** Converts a policy to the form in lists, without its rules. */
export function policySummaryView(policy: Omit<StoredPolicy, 'rules'>): PolicySummary {
  return {
    id: policy.id,
    version: '1.0',
    name: policy.name,
    chain_type: policy.chainType as WalletChainType,
    owner_id: policy.ownerId,
    created_at: policy.createdAtMs,
  };
}

/**
 * Checks that the policies that a body names exist and match the wallet's chain type, and locks them against deletion.
 *
 * @param pointer JSON pointer to the array that names them.
 * @throws ApiError invalid_data
 */
export async function requirePolicies(
  context: Pick<OperationContext, 'app' | 'em'>,
  ids: readonly string[],
  chainType: string,
  pointer: string,
): Promise<void> {
  for (const [index, id] of ids.entries()) {
    const row = await selectChainType(context, id).executeTakeFirst();
    const issue = { in: 'body', pointer: `${pointer}/${index}` };
    if (row === undefined) {
      throw new ApiError('invalid_data', `${issue.pointer}: no policy \`${id}\``, {
        data: { issues: [{ ...issue, message: `no policy \`${id}\`` }] },
      });
    }
    if (row.chain_type !== chainType) {
      const message = `the policy is for ${row.chain_type}, the wallet is on ${chainType}`;
      throw new ApiError('invalid_data', `${issue.pointer}: ${message}`, {
        data: { issues: [{ ...issue, message }] },
      });
    }
  }
}

/**
 * Returns a query that selects the chain type of a policy and locks the policy against deletion.
 *
 * KYSELY: the entity manager has no key-share lock.
 */
function selectChainType({ app, em }: Pick<OperationContext, 'app' | 'em'>, id: string) {
  return em
    .getKysely<Tables>()
    .selectFrom('policies')
    .select('chain_type')
    .where('id', '=', id)
    .where('app_id', '=', app.id)
    .forKeyShare();
}

type PartsContext = Pick<OperationContext, 'app' | 'em' | 'notes' | 'safeguards'>;

/** A condition set or an aggregation that a condition refers to. */
interface PolicyPart {
  readonly kind: 'condition set' | 'aggregation';
  readonly id: string;
  readonly ruleIndex: number;
  /** JSON pointer from the rule to the reference. */
  readonly place: string;
}

/** Returns the JSON pointer in the body to a reference. */
type PointerOf = (ruleIndex: number, place: string) => string;

/**
 * Refuses rules of an owned policy that refer to a condition set or an aggregation with a different owner or none.
 * Whoever can change such a part can change what the policy allows. Applies only if the app's safeguard
 * `policy_parts_require_owner` is on.
 *
 * @throws ApiError invalid_data that names the reference.
 */
export async function requirePartsOfOwner(
  context: PartsContext,
  ownerId: string | null,
  rules: readonly PolicyRuleRequest[],
  pointerOf: PointerOf,
): Promise<void> {
  if (ownerId === null) return;
  const parts = rules.flatMap(partsOf);
  if (parts.length === 0) return;
  const { policy_parts_require_owner: isRequired } = await readSafeguards(context);
  if (!isRequired) return;
  const owners = await readOwners(context, parts);
  for (const { kind, id, ruleIndex, place } of parts) {
    const partOwner = owners.get(id);
    // A deleted part cannot be changed.
    if (partOwner === undefined || partOwner === ownerId) continue;
    const came = partOwner === null ? 'which has no owner' : `which belongs to \`${partOwner}\``;
    throw invalidField(
      pointerOf(ruleIndex, place),
      `expected the owner of the policy to own the ${kind} \`${id}\`, ${came}`,
    );
  }
}

/**
 * Makes the check of `requirePartsOfOwner` for an update of a policy, which can change its rules, its owner or both.
 *
 * @param ownerId the owner that the body names; undefined if it names none.
 * @throws ApiError invalid_data that names the reference or, without new rules, the owner.
 */
export async function requirePartsAfterUpdate(
  context: PartsContext,
  before: StoredPolicy,
  change: OwnerFields & { readonly rules?: readonly PolicyRuleRequest[] | undefined },
  ownerId: string | null | undefined,
): Promise<void> {
  const newOwnerId = ownerId === undefined ? before.ownerId : ownerId;
  if (change.rules !== undefined) {
    await requirePartsOfOwner(context, newOwnerId, change.rules, (index, place) => `/rules/${index}${place}`);
  } else if (newOwnerId !== before.ownerId) {
    const pointer = change.owner === undefined ? '/owner_id' : '/owner';
    await requirePartsOfOwner(context, newOwnerId, before.rules, () => pointer);
  }
}

function partsOf(rule: PolicyRuleRequest, ruleIndex: number): PolicyPart[] {
  const conditions = rule.conditions;
  return conditions.flatMap(({ field_source, field, operator, value }, index) => {
    const place = `/conditions/${index}`;
    const parts: PolicyPart[] = [];
    if (operator === 'in_condition_set') {
      parts.push({ kind: 'condition set', id: String(value), ruleIndex, place: `${place}/value` });
    }
    const aggregationId = field_source === 'reference' ? referencedAggregation(field) : undefined;
    if (aggregationId !== undefined) {
      parts.push({ kind: 'aggregation', id: aggregationId, ruleIndex, place: `${place}/field` });
    }
    return parts;
  });
}

/** Reads the owners of those condition sets and aggregations that exist; null for those without an owner. */
async function readOwners(
  { app, em }: PartsContext,
  parts: readonly PolicyPart[],
): Promise<Map<string, string | null>> {
  const idsOf = (kind: PolicyPart['kind']) => [
    ...new Set(parts.filter((part) => part.kind === kind).map(({ id }) => id)),
  ];
  const [sets, aggregations] = [idsOf('condition set'), idsOf('aggregation')];
  const found = [
    ...(sets.length === 0 ? [] : await em.find(ConditionSetEntity, { id: { $in: sets }, appId: app.id })),
    ...(aggregations.length === 0
      ? []
      : await em.find(AggregationEntity, { id: { $in: aggregations }, appId: app.id })),
  ];
  return new Map(found.map(({ id, ownerId }) => [id, ownerId]));
}
