import type { WalletAuthority } from '../../authorization/wallet-authority.ts';
import { createWallet } from '../../domain/wallets/wallets/create-wallet.ts';
import { createWalletKey } from '../../domain/wallets/wallets/create-wallet-key.ts';
import { authorityOfNewWallet } from '../../domain/wallets/wallets/wallet-authority.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';
import { unwrapPrepared } from '../../prepared.ts';

export const prepare: Preparation<'createWallet', WalletAuthority | undefined> = ({ body }, context) =>
  authorityOfNewWallet(context, body);

export const run: PreparedHandler<'createWallet', WalletAuthority | undefined> = async (
  { body },
  context,
  prepared,
) => {
  const key = createWalletKey(context, body.chain_type, unwrapPrepared(prepared));
  return walletView(await createWallet(context, body, key));
};
