import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import type { ActionType, EndedSteps } from './action-type.ts';
import { movedIn } from './outcomes.ts';
import type { StoredStep } from './wallet-action-steps.ts';

const NO_ADDRESS = `0x${'0'.repeat(40)}`;

/** What deposits and withdrawals store for their outcome. */
export interface EarnOutcomeTerms {
  readonly wallet_address: string;
  /** What the steps before the deposit let the vault take, in base units. */
  readonly allowance?: string;
}

/** A deposit into a vault. Its shares are what the vault mints for the wallet. */
export const earnDepositType: ActionType = {
  events: {
    pending: 'wallet_action.earn_deposit.created',
    succeeded: 'wallet_action.earn_deposit.succeeded',
    rejected: 'wallet_action.earn_deposit.rejected',
    failed: 'wallet_action.earn_deposit.failed',
  },
  pending: { share_amount: null },
  notInEvents: [],
  onlyInSuccess: ['share_amount'],
  outcome({ status, steps, details, terms }) {
    if (status !== 'succeeded') return { share_amount: null };
    const minted = { token: details.vault_address, from: NO_ADDRESS, to: terms.wallet_address };
    return { share_amount: String(movedIn(steps, minted)) };
  },
  failureDetails: ({ status, steps, details, terms }) =>
    status === 'failed' && terms.allowance !== undefined && lastFailed(steps)
      ? {
          allowance: {
            ...{ asset_address: details.asset_address, spender: details.vault_address },
            raw_amount: terms.allowance,
          },
        }
      : undefined,
};

/** A withdrawal from a vault. Its amount is what the vault paid, which for a whole position is known only then. */
export const earnWithdrawType: ActionType = {
  events: {
    pending: 'wallet_action.earn_withdraw.created',
    succeeded: 'wallet_action.earn_withdraw.succeeded',
    rejected: 'wallet_action.earn_withdraw.rejected',
    failed: 'wallet_action.earn_withdraw.failed',
  },
  pending: { share_amount: null },
  notInEvents: [],
  onlyInSuccess: ['share_amount'],
  outcome(ended) {
    if (ended.status !== 'succeeded') return { share_amount: null };
    const { steps, details, terms } = ended;
    const burned = { token: details.vault_address, from: terms.wallet_address, to: NO_ADDRESS };
    return { ...receivedFrom(ended), share_amount: String(movedIn(steps, burned)) };
  },
};

/** A claim of rewards. Its amounts are what the distributor paid: another claim may have been first. */
export const earnIncentiveClaimType: ActionType = {
  events: {
    pending: 'wallet_action.earn_incentive_claim.created',
    succeeded: 'wallet_action.earn_incentive_claim.succeeded',
    rejected: 'wallet_action.earn_incentive_claim.rejected',
    failed: 'wallet_action.earn_incentive_claim.failed',
  },
  pending: {},
  notInEvents: [],
  outcome({ status, steps, details, terms }) {
    if (status !== 'succeeded') return {};
    const rewards = (details.rewards as { token_address: string }[]).map((reward) => ({
      ...reward,
      amount: String(
        movedIn(steps, {
          ...{ token: reward.token_address, from: terms.distributor, to: terms.wallet_address },
        }),
      ),
    }));
    return { rewards };
  },
};

/** A collection of the app's fees. */
export const earnFeeCollectType: ActionType = {
  events: {
    pending: 'wallet_action.earn_fee_collect.created',
    succeeded: 'wallet_action.earn_fee_collect.succeeded',
    rejected: 'wallet_action.earn_fee_collect.rejected',
    failed: 'wallet_action.earn_fee_collect.failed',
  },
  pending: {},
  notInEvents: [],
  outcome: (ended) => (ended.status === 'succeeded' ? receivedFrom(ended) : {}),
};

/** What the vault paid to the wallet. */
function receivedFrom({ steps, details, terms }: EndedSteps): object {
  const received = movedIn(steps, {
    ...{ token: details.asset_address, from: details.vault_address, to: terms.wallet_address },
  });
  return { raw_amount: String(received), amount: decimalText(fromRaw(received, details.decimals)) };
}

/** Whether the steps before the last one were executed: what they allowed remains. */
function lastFailed(steps: readonly StoredStep[]): boolean {
  return steps
    .slice(0, -1)
    .every((step) => 'transaction' in step && ['confirmed', 'finalized'].includes(step.transaction.status));
}
