import { claimAction, feeCollectionAction } from '../../../engine/actions/earn-terms.ts';
import { chainNamed, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { feeVault, rewardDistributor } from '../../../engine/signing/ethereum/contract-calls.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  ClaimEthereumEarnIncentiveRequest,
  CollectEthereumEarnFeesRequest,
  EarnIncentiveRewardsResponse,
  EthereumEarnPositionResponse,
} from '../../../generated/schemas.ts';
import type { EvmChain, IncentiveRewards } from '../../../ports/chains.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { readChain, requireKnownChain } from '../../access/chains/chains.ts';
import { authorizeUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { BuildTransaction } from '../sending/broadcast.ts';
import { callChain } from '../sending/call-chain.ts';
import { planCalls } from '../sending/plan-calls.ts';
import { WalletActionEntity, type WalletActionRow } from '../wallet-actions/wallet-action.entity.ts';
import { requireFreshNonce } from '../wallet-actions/wallet-action.ts';
import { startEarnAction } from './earn-deposits.ts';
import {
  askFees,
  askVault,
  assetView,
  chainOfVault,
  type EarnVault,
  findNamedVault,
  requireEarnWallet,
  requireVaultChain,
  userApyOf,
  vaultFields,
} from './earn-vault.ts';

/** A claim of rewards with its transaction. */
export interface ClaimPlan {
  readonly distributor: string;
  /** The rewards in wire form. */
  readonly rewards: readonly object[];
  readonly builds: readonly BuildTransaction[];
}

/**
 * Reads the rewards that a wallet can claim, and plans the claim.
 *
 * @throws ApiError with the codes that `claimRewards` lists, for a claim that cannot be executed.
 */
export async function planClaim(
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
    // The amounts are cumulative. The distributor subtracts what was already claimed.
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
 * @throws ApiError not_found; not_supported; invalid_request when there is nothing to claim; policy_violation; what
 * `requireAuthorization` throws; resource_conflict; insufficient_funds; transaction_execution_failure;
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
    async prepare() {
      requireEarnWallet(wallet);
      return { action: claimAction(body, requireRewardChain(body.chain)) };
    },
    allowsSigners: true,
  });
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const { distributor, rewards, builds } = unwrapPlan(planned);
  return startEarnAction(context, wallet, {
    ...{ type: 'earn_incentive_claim', body, builds, details: { chain: body.chain, rewards } },
    terms: { wallet_address: wallet.address, distributor },
    authorization: use.authorization,
  });
}

/**
 * Finds the EVM chain with this name.
 *
 * @throws ApiError not_supported
 */
function requireRewardChain(name: string): KnownChain {
  const chain = chainNamed(name);
  if (chain?.chainType === 'ethereum') return chain;
  throw new ApiError('not_supported', `/chain: expected the name of an EVM chain, got \`${name}\``);
}

interface RewardQuestion {
  readonly address: string;
  /** The error code if the rewards cannot be read. */
  readonly unreachable: 'unavailable' | 'transaction_broadcast_failure';
}

/**
 * Reads the rewards of an account from the configured source.
 *
 * @throws ApiError not_supported when no rewards are configured for the chain; the code in `unreachable` when the
 * rewards cannot be read.
 */
async function rewardsOn(
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

/** The fees to collect, and the transaction that collects them. */
export interface FeePlan {
  readonly rawAmount: bigint;
  readonly builds: readonly BuildTransaction[];
}

/**
 * Reads the app's fees from the vault, and plans their collection.
 *
 * @throws ApiError with the codes that `collectFees` lists, for a collection that cannot be executed.
 */
export async function planFeeCollection(
  context: PlanContext,
  walletId: string,
  body: CollectEthereumEarnFeesRequest,
): Promise<FeePlan> {
  const wallet = await findWallet(context, walletId);
  const vault = await readFeeBody(context, wallet, body);
  const chain = requireVaultChain(context, vault);
  const rawAmount = await callChain(askFees(chain, vault));
  if (rawAmount === undefined || rawAmount === 0n) {
    throw new ApiError('invalid_request', 'the vault has no fees to collect');
  }
  const data = feeVault.encodeCall('withdrawFees', wallet.address, rawAmount);
  const { builds } = await planCalls(context, {
    ...{ caip2: vault.caip2, address: wallet.address, method: 'earn_fee_collect' },
    calls: [{ to: vault.address.toLowerCase(), value: 0n, data }],
  });
  return { rawAmount, builds };
}

/**
 * Collects all fees that a vault holds for the app. They go to the app's admin wallet.
 *
 * @throws ApiError not_found; invalid_data; not_supported; invalid_request when there are none; policy_violation;
 * what `requireAuthorization` throws; resource_conflict; insufficient_funds; transaction_execution_failure;
 * transaction_broadcast_failure.
 */
export async function collectFees(
  context: OperationContext,
  {
    walletId,
    body,
    planned,
  }: { walletId: string; body: CollectEthereumEarnFeesRequest; planned: Planned<FeePlan> },
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'collectEthereumEarnFees',
    request: body,
    async prepare() {
      const vault = await readFeeBody(context, wallet, body);
      return { action: feeCollectionAction(body), vault };
    },
    allowsSigners: true,
  });
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const { rawAmount, builds } = unwrapPlan(planned);
  return startEarnAction(context, wallet, {
    ...{ type: 'earn_fee_collect', body, builds },
    details: vaultFields(use.prepared.vault, rawAmount),
    authorization: use.authorization,
    terms: { wallet_address: wallet.address },
  });
}

async function readFeeBody(
  context: Pick<PlanContext, 'em' | 'app'>,
  wallet: WalletRow,
  body: CollectEthereumEarnFeesRequest,
): Promise<EarnVault> {
  requireEarnWallet(wallet);
  const vault = await findNamedVault(context, body.vault_id);
  if (vault.provider !== 'aave') {
    throw new ApiError(
      'not_supported',
      `/vault_id: vaults of \`${vault.provider}\` pay fees as shares, which the admin wallet withdraws`,
    );
  }
  if (vault.adminWalletId !== wallet.id) {
    throw invalidField('/vault_id', 'expected a vault that this wallet administers');
  }
  return vault;
}

/**
 * Lists the rewards of a wallet on a chain.
 *
 * @throws ApiError not_supported; unavailable.
 */
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

/** The maximum number of rows per query. */
const BATCH = 500;

/**
 * Returns the current position of a wallet in a vault, and the amounts that its actions moved.
 *
 * CHOICE: the totals cover only succeeded actions of this server. Transactions that were sent by other means change the
 * position, but not the totals.
 *
 * @throws ApiError not_supported; unavailable.
 */
export async function getPosition(
  context: OperationContext,
  wallet: WalletRow,
  vault: EarnVault,
): Promise<EthereumEarnPositionResponse> {
  const known = chainOfVault(vault);
  const chain = requireKnownChain(context, known) as EvmChain;
  const [shares = 0n] =
    wallet.chain_type === 'ethereum'
      ? await readChain(chain.balances(wallet.address, [vault.address]), known)
      : [];
  const assets =
    shares === 0n ? 0n : await readChain(askVault(chain, vault, 'convertToAssets', shares), known);
  const rate = await context.vaultRates?.rateOf(vault.caip2, vault.address);
  return {
    asset: assetView(vault),
    shares_in_vault: String(shares),
    assets_in_vault: String(assets ?? 0n),
    total_deposited: String(await movedBy(context, wallet, { vault, type: 'earn_deposit' })),
    total_withdrawn: String(await movedBy(context, wallet, { vault, type: 'earn_withdraw' })),
    ...(rate === undefined ? {} : { apy_bps: Math.floor(userApyOf(rate)) }),
  };
}

interface MovedFilter {
  readonly vault: EarnVault;
  readonly type: 'earn_deposit' | 'earn_withdraw';
}

async function movedBy(
  { em }: OperationContext,
  wallet: WalletRow,
  { vault, type }: MovedFilter,
): Promise<bigint> {
  let sum = 0n;
  for (let after = ''; ; ) {
    const rows = await em.find(
      WalletActionEntity,
      { walletId: wallet.id, type, status: 'succeeded', id: { $gt: after } },
      {
        fields: ['id', 'details', 'outcome'],
        orderBy: { id: 'asc' },
        limit: BATCH,
        disableIdentityMap: true,
      },
    );
    for (const { details, outcome } of rows) {
      const moved = { ...JSON.parse(details), ...JSON.parse(outcome ?? '{}') };
      if (moved.vault_id === vault.id) sum += BigInt(moved.raw_amount);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return sum;
    after = last.id;
  }
}
