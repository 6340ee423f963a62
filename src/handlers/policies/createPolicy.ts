import { createPolicy } from '../../domain/access/policies/create-policy.ts';
import { policyView } from '../../domain/access/policies/policy-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createPolicy'> = async ({ body }, context) =>
  policyView(await createPolicy(context, body));
