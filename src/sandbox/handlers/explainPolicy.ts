import { type ExplainInput, explainPolicy } from '../../domain/requests/policy-desk/explain-policy.ts';
import type { DeskHandler } from '../control-plane.ts';
import type { PolicyExplanation } from '../generated/schemas.ts';

export const run: DeskHandler<'explainPolicy'> = ({ body }, { atDesk }) =>
  // The domain's types are the read-only versions of the contract's types.
  atDesk(async (context) => (await explainPolicy(context, body as ExplainInput)) as PolicyExplanation);
