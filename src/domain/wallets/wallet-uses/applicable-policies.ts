import type { SignedBy } from '../../access/owners/require-owner.ts';
import type { NamedPolicy } from '../../access/policies/enforce-policies.ts';
import type { FoundWallet } from '../wallets/wallet-row.ts';

/**
 * The policies that apply to a request, depending on who authorized it: a signer's override policies if it has any
 * (possibly an empty list), otherwise the wallet's.
 */
export function applicablePolicies(wallet: FoundWallet, signedBy: SignedBy): readonly NamedPolicy[] {
  if (signedBy.kind === 'signer' && signedBy.overridePolicyIds !== undefined)
    return signedBy.overridePolicyIds.map((id) => ({ id, rulesDigest: undefined }));
  // INVARIANT: a wallet's policy exists, so both columns are null or neither is.
  return wallet.policy_id === null
    ? []
    : [{ id: wallet.policy_id, rulesDigest: wallet.policy_rules_digest ?? undefined }];
}
