import { type LintInput, lintPolicy } from '../../domain/requests/policy-analysis/lint-policy.ts';
import type { AnalysisHandler } from '../control-plane.ts';
import type { PolicyLint } from '../generated/schemas.ts';

export const run: AnalysisHandler<'lintPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are the read-only versions of the contract's types.
  analyze(async (context) => (await lintPolicy(context, body as LintInput)) as unknown as PolicyLint);
