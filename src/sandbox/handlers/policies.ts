import type { ExplainInput } from '../../domain/requests/policy-analysis/explain-policy.ts';
import * as explainPolicyVerbs from '../../domain/requests/policy-analysis/explain-policy.ts';
import type { LintInput } from '../../domain/requests/policy-analysis/lint-policy.ts';
import * as lintPolicyVerbs from '../../domain/requests/policy-analysis/lint-policy.ts';
import type { ReplayInput } from '../../domain/requests/policy-analysis/replay-policy.ts';
import * as replayPolicyVerbs from '../../domain/requests/policy-analysis/replay-policy.ts';
import type { AnalysisHandler } from '../control-plane.ts';
import type { PolicyExplanation, PolicyLint, PolicyReplay } from '../generated/schemas.ts';
import { policyTrace } from '../views.ts';

export const explainPolicy: AnalysisHandler<'explainPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are the read-only versions of the contract's types.
  analyze(
    async (context) =>
      (await explainPolicyVerbs.explainPolicy(context, body as ExplainInput)) as PolicyExplanation,
  );

export const replayPolicy: AnalysisHandler<'replayPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are the read-only versions of the contract's types.
  analyze(
    async (context) => (await replayPolicyVerbs.replayPolicy(context, body as ReplayInput)) as PolicyReplay,
  );

export const lintPolicy: AnalysisHandler<'lintPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are the read-only versions of the contract's types.
  analyze(
    async (context) =>
      (await lintPolicyVerbs.lintPolicy(context, body as LintInput)) as unknown as PolicyLint,
  );

export const getPolicyTrace: AnalysisHandler<'getPolicyTrace'> = ({ path }, analysis) =>
  policyTrace(path.trace_id, analysis);
