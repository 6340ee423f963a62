import { hash } from 'node:crypto';
import type {
  CreatePolicyRequest,
  PolicyRuleRequest,
  PolicyRuleResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { checkRules } from './check-rules.ts';
import type { StoredPolicy } from './find-policy.ts';

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

/** The columns that hold a policy's rules. */
export function rulesColumns(rules: readonly PolicyRuleResponse[]): { rules: string; rules_digest: string } {
  const text = JSON.stringify(rules);
  return { rules: text, rules_digest: hash('sha256', text, 'base64') };
}

/**
 * Makes a policy for wallets of one chain.
 *
 * @throws ApiError invalid_policy_format for rules without a meaning, invalid_data for a missing owner.
 */
export async function createPolicy(
  context: OperationContext,
  input: CreatePolicyRequest,
): Promise<StoredPolicy> {
  const ownerId = (await resolveOwner(context, input)) ?? null;
  await checkRules(context, input.rules, input.chain_type, (index) => `/rules/${index}`);
  const policy: StoredPolicy = {
    id: context.ids.cuid2(),
    name: input.name,
    chainType: input.chain_type,
    rules: withIds(context, input.rules),
    revision: 0,
    ownerId,
    createdAtMs: context.nowMs,
  };
  await context.em
    .getKysely<Tables>()
    .insertInto('policies')
    .values({
      id: policy.id,
      app_id: context.app.id,
      name: policy.name,
      chain_type: policy.chainType,
      ...rulesColumns(policy.rules),
      revision: policy.revision,
      owner_id: policy.ownerId,
      created_at_ms: policy.createdAtMs,
    })
    .execute();
  return policy;
}
