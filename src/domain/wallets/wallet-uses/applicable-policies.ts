import type { SignedBy } from '../../access/owners/require-owner.ts';
import type { NamedPolicy } from '../../access/policies/enforce-policies.ts';
import type { FoundWallet } from '../wallets/wallet-row.ts';

/**
 * The policies that judge a request, by who agreed to it: for a signer with policies of its own only
 * those, none when its list is empty; in every other case the wallet's.
 */
export function applicablePolicies(wallet: FoundWallet, signedBy: SignedBy): readonly NamedPolicy[] {
  if (signedBy.kind === 'signer' && signedBy.overridePolicyIds !== undefined)
    return signedBy.overridePolicyIds.map((id) => ({ id, rulesDigest: undefined }));
  // INVARIANT: a policy that a wallet is under exists, so both columns are null or neither is.
  return wallet.policy_id === null
    ? []
    : [{ id: wallet.policy_id, rulesDigest: wallet.policy_rules_digest ?? undefined }];
}
