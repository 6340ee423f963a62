import { listPolicies } from '../../domain/access/policies/find-policy.ts';
import { policySummaryView } from '../../domain/access/policies/policy-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listPolicies'> = async ({ query }, context) => {
  const { policies, nextCursor } = await listPolicies(context, query);
  return { data: policies.map(policySummaryView), next_cursor: nextCursor };
};
