import type { Policy, PolicySummary, WalletChainType } from '../../../generated/schemas.ts';
import type { StoredPolicy } from './find-policy.ts';

/** A policy in wire form. */
export function policyView(policy: StoredPolicy): Policy {
  return { ...policySummaryView(policy), rules: [...policy.rules] };
}

/** A policy in lists: without its rules. */
export function policySummaryView(policy: Omit<StoredPolicy, 'rules'>): PolicySummary {
  return {
    id: policy.id,
    version: '1.0',
    name: policy.name,
    chain_type: policy.chainType as WalletChainType,
    owner_id: policy.ownerId,
    created_at: policy.createdAtMs,
  };
}
