import { hash } from 'node:crypto';
import type {
  CreatePolicyRequest,
  PolicyRuleRequest,
  PolicyRuleResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { checkRules } from './check-rules.ts';
import { readPolicy, type StoredPolicy } from './find-policy.ts';
import { PolicyEntity } from './policy.entity.ts';
import { requirePartsOfOwner } from './policy-parts.ts';
import { sealPolicy } from './policy-seals.ts';

/** Rules with new ids, members in wire order. */
export function withIds(
  { ids }: Pick<OperationContext, 'ids'>,
  rules: readonly PolicyRuleRequest[],
): PolicyRuleResponse[] {
  return rules.map((rule) => withId(ids.cuid2(), rule));
}

/** A rule with the given id; an id in the input is ignored. */
export function withId(
  id: string,
  { name, method, action, conditions }: PolicyRuleRequest,
): PolicyRuleResponse {
  return { id, name, method, action, conditions };
}

/** The properties that hold a policy's rules. */
export function documentOf(rules: readonly PolicyRuleResponse[]): { rules: string; rulesDigest: string } {
  const text = JSON.stringify(rules);
  return { rules: text, rulesDigest: hash('sha256', text, 'base64') };
}

/**
 * Creates a policy for wallets of one chain type.
 *
 * @throws ApiError invalid_policy_format for invalid rules, invalid_data for a missing owner, and what `requirePartsOfOwner` throws.
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
