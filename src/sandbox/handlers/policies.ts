import {
  type ExplainInput,
  explainPolicy as explainPolicyVerb,
} from '../../domain/requests/policy-analysis/explain-policy.ts';
import {
  type LintInput,
  lintPolicy as lintPolicyVerb,
} from '../../domain/requests/policy-analysis/lint-policy.ts';
import {
  type ReplayInput,
  replayPolicy as replayPolicyVerb,
} from '../../domain/requests/policy-analysis/replay-policy.ts';
import type { AnalysisHandler } from '../control-plane.ts';
import type { PolicyExplanation, PolicyReplay } from '../generated/schemas.ts';
import { policyTrace } from '../policy-trace.ts';

export const explainPolicy: AnalysisHandler<'explainPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are read-only versions of the API document's types.
  analyze(async (context) => (await explainPolicyVerb(context, body as ExplainInput)) as PolicyExplanation);

export const replayPolicy: AnalysisHandler<'replayPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are read-only versions of the API document's types.
  analyze(async (context) => (await replayPolicyVerb(context, body as ReplayInput)) as PolicyReplay);

export const lintPolicy: AnalysisHandler<'lintPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are read-only versions of the API document's types.
  analyze((context) => lintPolicyVerb(context, body as LintInput));

export const getPolicyTrace: AnalysisHandler<'getPolicyTrace'> = ({ path }, analysis) =>
  policyTrace(path.trace_id, analysis);
