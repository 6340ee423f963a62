import { type ExplainInput, explainPolicy } from '../../domain/requests/policy-desk/explain-policy.ts';
import type { DeskHandler } from '../control-plane.ts';
import type { PolicyExplanation } from '../generated/schemas.ts';

export const run: DeskHandler<'explainPolicy'> = ({ body }, { atDesk }) =>
  // The domain's types are the same, read-only.
  atDesk(async (context) => (await explainPolicy(context, body as ExplainInput)) as PolicyExplanation);
