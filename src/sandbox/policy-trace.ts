import { explainPolicy } from '../domain/requests/policy-analysis/explain-policy.ts';
import { findDenial } from '../domain/wallets/wallet-uses/find-uses.ts';
import type { PolicyDecision } from '../engine/policy/evaluate.ts';
import { ApiError } from '../errors.ts';
import type { ReadResources } from '../ports/refusals.ts';
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

/**
 * Returns the decision by which a policy would deny a request that was refused for lack of funds before any policy was
 * evaluated. Returns undefined if no policy denies it, and for operations whose requests cannot be evaluated in
 * advance.
 */
export async function denialBehindFunds(
  { appId, operation, data, body }: Parameters<ReadResources>[0],
  walletId: string,
  { analyze }: PolicyAnalysis,
): Promise<PolicyDecision | undefined> {
  if (data.shortfall === undefined || operation === undefined) return undefined;
  return analyze(async (context) => {
    try {
      const input = { wallet_id: walletId, operation, request: (body ?? {}) as object };
      const { action, policies } = await explainPolicy({ ...context, onlyAppId: appId }, input);
      const denying = policies.find(({ recomputed }) => !recomputed.allowed);
      if (denying === undefined) return undefined;
      const { policy_id, units } = denying;
      return { allowed: false, policy_id, method: action.method, units };
    } catch (error) {
      if (error instanceof ApiError) return undefined;
      throw error;
    }
  });
}
