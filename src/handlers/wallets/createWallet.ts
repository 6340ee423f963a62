import {
  authorityOfNewWallet,
  type NewAuthority,
} from '../../domain/wallets/wallet-authorities/new-authority.ts';
import { createPreparedWallet } from '../../domain/wallets/wallets/create-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createWallet', NewAuthority> = ({ body }, context) =>
  authorityOfNewWallet(context, body);

export const run: PreparedHandler<'createWallet', NewAuthority> = async ({ body }, context, prepared) =>
  walletView(await createPreparedWallet(context, body, prepared));
