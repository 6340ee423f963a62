import { listRewards } from '../../domain/money/earn/list-rewards.ts';
import { findWallet } from '../../domain/wallets/wallets/find-wallet.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getEthereumEarnIncentiveRewards'> = async ({ path, query }, context) =>
  listRewards(context, await findWallet(context, path.wallet_id), query.chain);
