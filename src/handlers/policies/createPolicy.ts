import { createPolicy as create } from '../../domain/access/policies/create-policy.ts';
import { policyView } from '../../domain/access/policies/policy-view.ts';
import type { Handler } from '../../operation-context.ts';

export const createPolicy: Handler<'createPolicy'> = async ({ body }, context) =>
  policyView(await create(context, body));
