import { findDenial } from '../domain/wallets/wallet-uses/find-uses.ts';
import type { PolicyAnalysis } from './control-plane.ts';
import type { PolicyTrace } from './generated/schemas.ts';

/**
 * Finds the trace of a denied request, by the trace's id or the request's id.
 *
 * @throws ApiError not_found
 */
export function policyTrace(id: string, { analyze }: PolicyAnalysis): Promise<PolicyTrace> {
  return analyze(async ({ em, onlyAppId }) => {
    const use = await findDenial(em, id, onlyAppId);
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
}
