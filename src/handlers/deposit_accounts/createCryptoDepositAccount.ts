import {
  createDepositAccount,
  prepareDepositAccount,
} from '../../domain/money/crypto-deposits/create-deposit-account.ts';
import type { ResolvedRoute } from '../../domain/money/crypto-deposits/resolve-route.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createCryptoDepositAccount', readonly ResolvedRoute[]> = (
  { path, body },
  context,
) => prepareDepositAccount(context, path.wallet_id, body);

export const run: PreparedHandler<'createCryptoDepositAccount', readonly ResolvedRoute[]> = async (
  { path, body },
  context,
  prepared,
) => ({
  deposit_accounts: await createDepositAccount(context, { walletId: path.wallet_id, body, prepared }),
});
