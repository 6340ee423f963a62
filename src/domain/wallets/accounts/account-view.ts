import type { AccountResponse, FirstClassChainType } from '../../../generated/schemas.ts';
import type { Account } from './find-account.ts';

/** An account as the contract shows it. */
export function accountView({ account, wallets }: Account): AccountResponse {
  return {
    id: account.id,
    display_name: account.displayName,
    wallets: wallets.map(({ id, address, chain_type }) => ({
      id,
      // Only wallets of these chain types come into an account.
      chain_type: chain_type as FirstClassChainType,
      address,
    })),
  };
}
