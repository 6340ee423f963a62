import type { AnalysisHandler } from '../control-plane.ts';
import { policyTrace } from '../policy-trace.ts';

export const run: AnalysisHandler<'getPolicyTrace'> = ({ path }, analysis) =>
  policyTrace(path.trace_id, analysis);
