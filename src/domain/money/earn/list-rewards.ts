import type { EarnIncentiveRewardsResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { requireRewardChain, rewardsOn } from './claim-rewards.ts';
import { requireEarnWallet } from './earn-terms.ts';

/** The rewards of a wallet on a chain. @throws ApiError not_supported; unavailable. */
export async function listRewards(
  context: OperationContext,
  wallet: WalletRow,
  chainName: string,
): Promise<EarnIncentiveRewardsResponse> {
  requireEarnWallet(wallet);
  const chain = requireRewardChain(chainName);
  const { rewards } = await rewardsOn(context, chain, {
    ...{ address: wallet.address, unreachable: 'unavailable' },
  });
  return {
    rewards: rewards.map(({ tokenAddress, symbol, decimals, rawCumulative, rawClaimed }) => ({
      token_address: tokenAddress,
      token_symbol: symbol,
      token_decimals: decimals,
      amount_claimed: String(rawClaimed),
      amount_unclaimed: String(rawCumulative - rawClaimed),
    })),
  };
}
