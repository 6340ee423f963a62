import type { SignedBy } from '../../authorization/require-owner.ts';
import type { WalletRow } from './wallet-row.ts';

/**
 * The ids of the policies that judge a request, by who agreed to it: for a signer with policies of its own only
 * those, none when its list is empty; in every other case the wallet's.
 */
export function applicablePolicyIds(wallet: WalletRow, signedBy: SignedBy): readonly string[] {
  if (signedBy.kind === 'signer' && signedBy.overridePolicyIds !== undefined)
    return signedBy.overridePolicyIds;
  return wallet.policy_id === null ? [] : [wallet.policy_id];
}
