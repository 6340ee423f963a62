import { invalidField } from '../../../errors.ts';
import type { PolicyRuleRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { referencedAggregation } from '../../../policy/conditions/reference.ts';
import type { ConditionInput } from '../../../policy/source.ts';
import { readSafeguards } from '../../base/safeguards/read-safeguards.ts';
import { AggregationEntity } from '../aggregations/aggregation.entity.ts';
import { ConditionSetEntity } from '../condition-sets/condition-set.entity.ts';
import type { OwnerFields } from '../key-quorums/resolve-owner.ts';
import type { StoredPolicy } from './find-policy.ts';

type PartsContext = Pick<OperationContext, 'app' | 'em' | 'safeguards'>;

/** A condition set or an aggregation that a condition refers to. */
interface PolicyPart {
  readonly kind: 'condition set' | 'aggregation';
  readonly id: string;
  readonly ruleIndex: number;
  /** JSON pointer from the rule to the reference. */
  readonly place: string;
}

/** JSON pointer to a reference in the body. */
type PointerOf = (ruleIndex: number, place: string) => string;

/**
 * Refuses rules of an owned policy that refer to a condition set or an aggregation with another owner or none, where
 * the app's settings say so: a change of those changes what the policy allows.
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
    // Deleted parts cannot be changed.
    if (partOwner === undefined || partOwner === ownerId) continue;
    const came = partOwner === null ? 'which has no owner' : `which belongs to \`${partOwner}\``;
    throw invalidField(
      pointerOf(ruleIndex, place),
      `expected the owner of the policy to own the ${kind} \`${id}\`, ${came}`,
    );
  }
}

/**
 * The same for an update of a policy, which can change its rules, its owner or both.
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
  const conditions = rule.conditions as unknown as readonly ConditionInput[];
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

/** The owners of the parts that exist. */
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
