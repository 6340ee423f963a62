import { type ReplayInput, replayPolicy } from '../../domain/requests/policy-analysis/replay-policy.ts';
import type { AnalysisHandler } from '../control-plane.ts';
import type { PolicyReplay } from '../generated/schemas.ts';

export const run: AnalysisHandler<'replayPolicy'> = ({ body }, { analyze }) =>
  // The domain's types are the read-only versions of the contract's types.
  analyze(async (context) => (await replayPolicy(context, body as ReplayInput)) as PolicyReplay);
