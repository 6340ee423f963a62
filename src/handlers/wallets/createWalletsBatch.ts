import type { WalletAuthority } from '../../authorization/wallet-authority.ts';
import { createWalletsBatch } from '../../domain/wallets/wallets/create-wallets-batch.ts';
import { authorityOfNewWallet } from '../../domain/wallets/wallets/wallet-authority.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';
import { unwrapPrepared } from '../../prepared.ts';

type Authorities = readonly (WalletAuthority | undefined)[];

export const prepare: Preparation<'createWalletsBatch', Authorities> = async ({ body }, context) => {
  const authorities: (WalletAuthority | undefined)[] = [];
  for (const wallet of body.wallets) authorities.push(await authorityOfNewWallet(context, wallet));
  return authorities;
};

export const run: PreparedHandler<'createWalletsBatch', Authorities> = async (
  { body },
  context,
  prepared,
) => ({
  results: await createWalletsBatch(context, body.wallets, unwrapPrepared(prepared)),
});
