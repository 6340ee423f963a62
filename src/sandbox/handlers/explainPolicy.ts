import { type ExplainInput, explainPolicy } from '../../domain/requests/policy-analysis/explain-policy.ts';
import type { AnalysisHandler } from '../control-plane.ts';
import type { PolicyExplanation } from '../generated/schemas.ts';

export const run: AnalysisHandler<'explainPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are the read-only versions of the contract's types.
  analyze(async (context) => (await explainPolicy(context, body as ExplainInput)) as PolicyExplanation);
