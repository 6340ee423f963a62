import type { AccountResponse, FirstClassChainType } from '../../../generated/schemas.ts';
import type { Account } from './find-account.ts';

/** An account in wire form. */
export function accountView({ account, wallets }: Account): AccountResponse {
  return {
    id: account.id,
    display_name: account.displayName,
    wallets: wallets.map(({ id, address, chain_type }) => ({
      id,
      // Accounts contain only wallets of these chain types.
      chain_type: chain_type as FirstClassChainType,
      address,
    })),
  };
}
