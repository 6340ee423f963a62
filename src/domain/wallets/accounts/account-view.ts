import type { AccountResponse, AccountWallet, FirstClassChainType } from '../../../generated/schemas.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import type { Account } from './find-account.ts';

/** An account in wire form. */
export function accountView({ account, wallets }: Account): AccountResponse {
  return {
    id: account.id,
    display_name: account.displayName,
    wallets: wallets.map((row) => ({
      id: row.id,
      // Accounts contain only wallets of these chain types.
      chain_type: row.chain_type as FirstClassChainType,
      address: row.address,
      ...custodyOf(row),
    })),
  };
}

function custodyOf(row: WalletRow): Pick<AccountWallet, 'custody'> {
  const { custody_provider: provider, custody_provider_user_id: userId } = row;
  return provider === null || userId === null ? {} : { custody: { provider, provider_user_id: userId } };
}
