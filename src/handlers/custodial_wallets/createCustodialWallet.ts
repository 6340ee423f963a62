import { createCustodialWallet } from '../../domain/wallets/custodial-wallets/create-custodial-wallet.ts';
import { custodialWalletView } from '../../domain/wallets/custodial-wallets/custodial-wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createCustodialWallet'> = async ({ body }, context) =>
  custodialWalletView(await createCustodialWallet(context, body), body.chain_type);
