import assert from 'node:assert/strict';
import type {
  CustodialWallet,
  CustodialWalletChain,
  CustodialWalletChainType,
} from '../../../generated/schemas.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';

/**
 * A custodial wallet in the wire form of its own operation; other operations show it as a plain wallet. The deprecated
 * `chain_type` is present if the caller gave it.
 */
export function custodialWalletView(
  row: WalletRow,
  chainType: CustodialWalletChainType | undefined,
): CustodialWallet {
  const { custody_provider: provider, custody_provider_user_id: userId } = row;
  assert(provider !== null && userId !== null, `wallet ${row.id} is not custodial`);
  return {
    id: row.id,
    address: row.address,
    chain: row.custody_chain as CustodialWalletChain,
    ...(chainType === undefined ? {} : { chain_type: chainType }),
    custody: { provider, provider_user_id: userId },
    owner_id: row.owner_id,
    policy_ids: row.policy_id === null ? [] : [row.policy_id],
    additional_signers: JSON.parse(row.additional_signers),
  };
}
