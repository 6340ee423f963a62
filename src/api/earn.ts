import {
  type DepositPlan,
  depositIntoVault,
  planDepositRequest,
  planWithdrawalRequest,
  withdrawFromVault,
} from '../domain/money/earn/earn-deposits.ts';
import {
  type ClaimPlan,
  claimRewards,
  collectFees,
  type FeePlan,
  getPosition,
  listRewards,
  planClaim,
  planFeeCollection,
} from '../domain/money/earn/earn-rewards.ts';
import { findVault, readVaultView } from '../domain/money/earn/earn-vault.ts';
import type { PlannedCalls } from '../domain/money/sending/plan-calls.ts';
import { walletActionView } from '../domain/money/wallet-actions/wallet-action.ts';
import { findWallet } from '../domain/wallets/wallets/find-wallet.ts';
import type {
  EarnDepositActionResponse,
  EarnFeeCollectActionResponse,
  EarnIncentiveClaimActionResponse,
  EarnWithdrawActionResponse,
} from '../generated/schemas.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const getEthereumEarnVault: Handler<'getEthereumEarnVault'> = async ({ path }, context) =>
  readVaultView(context, await findVault(context, path.vault_id));

export const depositEthereumEarn: PlannedHandler<'depositEthereumEarn', DepositPlan> = {
  plan: ({ path, body }, context) => planDepositRequest(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await depositIntoVault(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as EarnDepositActionResponse;
  },
};

export const getEthereumEarnIncentiveRewards: Handler<'getEthereumEarnIncentiveRewards'> = async (
  { path, query },
  context,
) => listRewards(context, await findWallet(context, path.wallet_id), query.chain);

export const claimEthereumEarnIncentive: PlannedHandler<'claimEthereumEarnIncentive', ClaimPlan> = {
  plan: ({ path, body }, context) => planClaim(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await claimRewards(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as EarnIncentiveClaimActionResponse;
  },
};

export const getEthereumEarnPosition: Handler<'getEthereumEarnPosition'> = async (
  { path, query },
  context,
) => {
  const includeArchived = query.include_archived;
  const wallet = await findWallet(context, path.wallet_id, { includeArchived });
  return getPosition(context, wallet, await findVault(context, query.vault_id));
};

export const withdrawEthereumEarn: PlannedHandler<'withdrawEthereumEarn', PlannedCalls> = {
  plan: ({ path, body }, context) => planWithdrawalRequest(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await withdrawFromVault(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as EarnWithdrawActionResponse;
  },
};

export const collectEthereumEarnFees: PlannedHandler<'collectEthereumEarnFees', FeePlan> = {
  plan: ({ path, body }, context) => planFeeCollection(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await collectFees(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as EarnFeeCollectActionResponse;
  },
};
