import {
  authoritiesOfNewWallets,
  type NewAuthority,
} from '../../domain/wallets/wallet-authorities/new-authority.ts';
import { createWalletsBatch } from '../../domain/wallets/wallets/create-wallets-batch.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createWalletsBatch', readonly NewAuthority[]> = ({ body }, context) =>
  authoritiesOfNewWallets(context, body.wallets);

export const run: PreparedHandler<'createWalletsBatch', readonly NewAuthority[]> = async (
  { body },
  context,
  prepared,
) => ({
  results: await createWalletsBatch(context, body.wallets, prepared),
});
