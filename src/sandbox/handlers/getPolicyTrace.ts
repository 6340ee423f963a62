import { findDenial } from '../../domain/wallets/wallet-uses/find-uses.ts';
import type { AnalysisHandler } from '../control-plane.ts';
import type { PolicyTrace } from '../generated/schemas.ts';

export const run: AnalysisHandler<'getPolicyTrace'> = ({ path }, { analyze }) =>
  analyze(async ({ em }) => {
    const use = await findDenial(em, path.trace_id);
    return {
      id: use.traceId,
      app_id: use.appId,
      wallet_id: use.walletId,
      operation: use.operation,
      method: use.method,
      request_id: use.requestId,
      judged_at_ms: use.judgedAtMs,
      decision: 'denied',
      policy_ids: [...use.policyIds],
      request: (use.request as PolicyTrace['request'] | undefined) ?? null,
      policies: (use.trace as PolicyTrace['policies'] | undefined) ?? null,
    };
  });
