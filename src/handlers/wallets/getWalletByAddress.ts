import { normalizeAddress } from '../../assets/normalize-address.ts';
import { findWalletByAddress } from '../../domain/wallets/wallets/find-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWalletByAddress'> = async ({ body }, context) => {
  const address = normalizeAddress(body.address);
  return walletView(await findWalletByAddress(context, address, { includeArchived: body.include_archived }));
};
