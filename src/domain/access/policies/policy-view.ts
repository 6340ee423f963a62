import type { Policy, WalletChainType } from '../../../generated/schemas.ts';
import type { StoredPolicy } from './find-policy.ts';

/** A policy in wire form. */
export function policyView(policy: StoredPolicy): Policy {
  return {
    id: policy.id,
    version: '1.0',
    name: policy.name,
    chain_type: policy.chainType as WalletChainType,
    rules: [...policy.rules],
    owner_id: policy.ownerId,
    created_at: policy.createdAtMs,
  };
}
