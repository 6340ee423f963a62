import { claimAction } from '../../../actions/earn-terms.ts';
import { chainNamed, type KnownChain } from '../../../assets/known-chains.ts';
import { ApiError } from '../../../errors.ts';
import type { ClaimEthereumEarnIncentiveRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import type { IncentiveRewards } from '../../../ports/earn.ts';
import { rewardDistributor } from '../../../signing/ethereum/contracts/vault-calls.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { planCalls } from '../sending/plan-calls.ts';
import type { BuildTransaction } from '../sending/send-built.ts';
import { requireFreshNonce } from '../wallet-actions/begin-wallet-action.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';
import { requireEarnWallet } from './earn-terms.ts';
import { startEarnAction } from './start-earn-action.ts';

/** A claim with its transaction. */
export interface ClaimPlan {
  readonly distributor: string;
  /** In wire form. */
  readonly rewards: readonly object[];
  readonly builds: readonly BuildTransaction[];
}

/**
 * Queries what a wallet can claim.
 *
 * @throws the verb's errors for a claim that cannot be executed.
 */
export async function prepareClaim(
  context: PlanContext,
  walletId: string,
  { chain: name }: ClaimEthereumEarnIncentiveRequest,
): Promise<ClaimPlan> {
  const wallet = await findWallet(context, walletId);
  requireEarnWallet(wallet);
  const chain = requireRewardChain(name);
  const { distributor, rewards: all } = await rewardsOn(context, chain, {
    ...{ address: wallet.address, unreachable: 'transaction_broadcast_failure' },
  });
  const rewards = all.filter(({ rawCumulative, rawClaimed }) => rawCumulative > rawClaimed);
  if (rewards.length === 0) throw new ApiError('invalid_request', `there is nothing to claim on \`${name}\``);
  const data = rewardDistributor.encodeCall(
    'claim',
    rewards.map(() => wallet.address),
    rewards.map(({ tokenAddress }) => tokenAddress),
    // The distributor subtracts what was claimed before.
    rewards.map(({ rawCumulative }) => rawCumulative),
    rewards.map(({ proof }) => proof),
  );
  const { builds } = await planCalls(context, {
    ...{ caip2: chain.caip2, address: wallet.address, method: 'earn_incentive_claim' },
    calls: [{ to: distributor.toLowerCase(), value: 0n, data }],
  });
  const shown = rewards.map(({ tokenAddress, symbol, decimals, rawCumulative, rawClaimed }) => ({
    ...{ token_address: tokenAddress, token_symbol: symbol, token_decimals: decimals },
    amount: String(rawCumulative - rawClaimed),
  }));
  return { distributor, rewards: shown, builds };
}

/**
 * Claims all rewards of a wallet on one chain.
 *
 * @throws ApiError not_found; not_supported; invalid_request when there is nothing to claim; the codes of
 * `requireOwner`; policy_violation; resource_conflict; insufficient_funds; transaction_execution_failure;
 * transaction_broadcast_failure.
 */
export async function claimRewards(
  context: OperationContext,
  {
    walletId,
    body,
    planned,
  }: { walletId: string; body: ClaimEthereumEarnIncentiveRequest; planned: Planned<ClaimPlan> },
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'claimEthereumEarnIncentive',
    request: body,
    decode() {
      requireEarnWallet(wallet);
      return { action: claimAction(body, requireRewardChain(body.chain)) };
    },
    mayBeSigner: true,
  });
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const { distributor, rewards, builds } = unwrapPlan(planned);
  return startEarnAction(context, wallet, {
    ...{ type: 'earn_incentive_claim', body, builds, details: { chain: body.chain, rewards } },
    terms: { wallet_address: wallet.address, distributor },
  });
}

/** The EVM chain of a name. @throws ApiError not_supported */
export function requireRewardChain(name: string): KnownChain {
  const chain = chainNamed(name);
  if (chain?.chainType === 'ethereum') return chain;
  throw new ApiError('not_supported', `/chain: expected the name of an EVM chain, got \`${name}\``);
}

interface RewardQuestion {
  readonly address: string;
  /** The code of the error when the rewards cannot be read. */
  readonly unreachable: 'unavailable' | 'transaction_broadcast_failure';
}

/** @throws ApiError not_supported when no rewards are configured for the chain; the code of `unreachable`. */
export async function rewardsOn(
  { incentives }: Pick<PlanContext, 'incentives'>,
  { name, caip2 }: KnownChain,
  { address, unreachable }: RewardQuestion,
): Promise<IncentiveRewards> {
  let found: IncentiveRewards | undefined;
  try {
    found = await incentives?.rewards(caip2, address);
  } catch (cause) {
    const effect = unreachable === 'unavailable' ? '' : '; nothing was signed or sent';
    throw new ApiError(unreachable, `the rewards on \`${name}\` could not be read${effect}`, { cause });
  }
  if (found !== undefined) return found;
  throw new ApiError('not_supported', `/chain: no rewards are configured here on \`${name}\``);
}
