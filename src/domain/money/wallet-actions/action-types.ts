import assert from 'node:assert/strict';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import type { FeeLineItem, Gas, WalletActionStatus, WalletActionType } from '../../../generated/schemas.ts';
import type { MovementPattern } from '../../../ports/chains.ts';
import { hasHappened, type StoredStep } from './wallet-action-steps.ts';

/** Converts a network fee to wire form; null if gas is not paid in a native asset. */
export function gasOf({ native }: KnownChain, fee: bigint): Gas | null {
  if (native === undefined) return null;
  return {
    amount: decimalText(fromRaw(fee, native.decimals)),
    base_amount: fee.toString(),
    gas_asset: native.asset,
  };
}

/** Returns the network fees that the wallet paid for all steps together; null if it paid none. */
function gasPaid(steps: readonly StoredStep[]): Gas | null {
  const transactions = steps
    .flatMap((step) => ('transaction' in step ? step.transaction : []))
    .filter(({ is_sponsored: isSponsored }) => isSponsored === 0);
  const paid = transactions.flatMap(({ fee_paid: fee }) => fee ?? []);
  const chain = chainOfCaip2(transactions[0]?.caip2 ?? '');
  if (paid.length === 0 || chain === undefined) return null;
  return gasOf(
    chain,
    paid.reduce((sum, fee) => sum + BigInt(fee), 0n),
  );
}

/**
 * Returns the wire fields that the external step of an action sets on delivery; undefined for actions without such a
 * step.
 */
function deliveryOf(steps: readonly StoredStep[]): object | undefined {
  const external = steps.find((step) => 'external' in step);
  return external?.external.delivery;
}

/** Returns the fee that the exchange kept, in this asset; undefined if it kept none. */
function relayerFeeIn(steps: readonly StoredStep[], asset: string | undefined): ProviderFee | undefined {
  const { fees = [] } = (deliveryOf(steps) ?? {}) as { fees?: readonly FeeLineItem[] };
  const fee = fees.find(({ type }) => type === 'relayer');
  return fee === undefined || asset === undefined ? undefined : { asset, amount: fee.amount };
}

/** Selects movements of assets. Addresses can be in any case. A `token` of null selects the native asset. */
interface MovementFilter {
  readonly token: string | null;
  readonly from?: string;
  readonly to?: string;
}

/**
 * Sums the movements in the transactions of an action that match a filter, in base units.
 *
 * INVARIANT: when the action ends, every step stored with `readsEffects` has its effects, if its transaction succeeded.
 */
function movedIn(steps: readonly StoredStep[], { token, from, to }: MovementFilter): bigint {
  const isSame = (wanted: string | null | undefined, found: string | null): boolean =>
    wanted === undefined || wanted?.toLowerCase() === found?.toLowerCase();
  return steps
    .flatMap((step) => ('transaction' in step ? step.effects : []))
    .filter((moved) => isSame(token, moved.token) && isSame(from, moved.from) && isSame(to, moved.to))
    .reduce((sum, { rawAmount }) => sum + BigInt(rawAmount), 0n);
}

/**
 * The definition of one type of wallet action: everything that differs between types. The engine does the rest: it
 * stores the action with its steps, follows them, settles the action when all steps have ended, and records its events.
 *
 * A new type needs one definition, listed below, and a verb that
 *
 * 1. plans outside the transaction of the request, for example with `planCalls` or `transferPlanners`,
 * 2. authorizes with `authorizeUse`, whose `prepare` gives policies the body with every field in every spelling,
 * 3. signs every transaction with `sendSteps`, in the transaction of the request,
 * 4. stores the action with `beginWalletAction`, in the same transaction.
 */
interface ActionType {
  /** The event of each status. The names are literals, because a house test searches for them. */
  readonly events: Readonly<Record<WalletActionStatus, string>>;
  /** The wire fields whose values are known only at the end, with their values until then. */
  readonly pending: object;
  /** The wire fields that earlier versions did not store, with the values for the actions of those versions. */
  readonly ifNotStored?: object;
  /** Wire fields that responses have and events do not. */
  readonly notInEvents: readonly string[];
  /** Wire fields that the event of success has and the other events do not. */
  readonly onlyInSuccess?: readonly string[];
  /** Wire fields that events have and responses do not. */
  readonly onlyInEvents?: readonly string[];
  /**
   * Returns the wire fields that change when the action ends. They are computed from what happened, never from
   * estimates. The effects of steps stored with `readsEffects` show what transactions moved (`movedIn`); the `delivery`
   * of an external step shows what it delivered. `failure_reason` is added to them.
   */
  outcome(ended: EndedSteps): object;
  /** Returns details of the failure in addition to those of the failed step. Undefined if there are none. */
  failureDetails?(ended: EndedSteps): object | undefined;
  /** Returns the fee that an exchange took, if any. It is recorded as usage once the action has succeeded. */
  providerFee?(ended: EndedSteps): ProviderFee | undefined;
}

/** A fee in a named asset. */
interface ProviderFee {
  readonly asset: string;
  /** The amount in units of the asset, decimal. */
  readonly amount: string;
}

export interface EndedSteps {
  readonly status: Exclude<WalletActionStatus, 'pending'>;
  readonly steps: readonly StoredStep[];
  /** The wire fields that the verb stored when it created the action. */
  // biome-ignore lint/suspicious/noExplicitAny: the verb of the same type has written them
  readonly details: any;
  /** Values that the verb stored only to compute the outcome; undefined when it stored none. */
  // biome-ignore lint/suspicious/noExplicitAny: the verb of the same type has written them
  readonly terms: any;
}

const NO_ADDRESS = `0x${'0'.repeat(40)}`;

/** The values that deposits and withdrawals store for their outcome. */
export interface EarnOutcomeTerms {
  readonly wallet_address: string;
  /**
   * The amount that a separate approval before the deposit allows the vault to take, in base units. Absent without one.
   */
  readonly allowance?: string;
}

/** A deposit into a vault. Its `shares` are the shares that the vault mints for the wallet. */
const earnDepositType: ActionType = {
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

/**
 * A withdrawal from a vault. Its amount is the amount that the vault paid, which for a whole position is known only at
 * the end.
 */
const earnWithdrawType: ActionType = {
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

/** A claim of rewards. Its amounts are those that the distributor paid, because another claim may have come first. */
const earnIncentiveClaimType: ActionType = {
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

/** A collection of the app's fees from a vault. */
const earnFeeCollectType: ActionType = {
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

/** Returns the amount that the vault paid to the wallet, as wire fields. */
function receivedFrom({ steps, details, terms }: EndedSteps): object {
  const received = movedIn(steps, {
    ...{ token: details.asset_address, from: details.vault_address, to: terms.wallet_address },
  });
  return { raw_amount: String(received), amount: decimalText(fromRaw(received, details.decimals)) };
}

/** Returns whether all steps but the last were executed, so that their approval remains. */
function lastFailed(steps: readonly StoredStep[]): boolean {
  return steps
    .slice(0, -1)
    .every((step) => 'transaction' in step && ['confirmed', 'finalized'].includes(step.transaction.status));
}

/** A payout to a bank: the deposit to a provider, and the provider's payment. */
const payoutType: ActionType = {
  events: {
    pending: 'wallet_action.payout.created',
    succeeded: 'wallet_action.payout.succeeded',
    rejected: 'wallet_action.payout.rejected',
    failed: 'wallet_action.payout.failed',
  },
  pending: {},
  ifNotStored: { developer_fee_percent: '0' },
  // CHOICE: events of payouts omit the fee, as the published service does.
  notInEvents: ['source', 'destination', 'developer_fee_percent'],
  onlyInEvents: [
    'source_asset',
    'source_chain',
    'source_amount',
    'destination_fiat_account_id',
    'destination_currency',
    'destination_payment_rail',
  ],
  outcome: () => ({}),
};

/** The values from which the outcome of a swap is computed. */
export interface SwapOutcomeTerms {
  /** For a swap by a router: filters for the movements whose sums are the spent and the received amount. */
  readonly spent?: MovementPattern;
  readonly received?: MovementPattern;
  /** The allowance that a separate approval before the swap gave to the router. Absent without one. */
  readonly allowance?: {
    readonly token_address: string;
    readonly spender: string;
    readonly raw_amount: string;
  };
  /** For a swap by an exchange: the asset of its fees. */
  readonly feeAsset?: string;
}

const nothing = { input_amount: null, output_amount: null, fees: null };

/** A swap: by a router on one chain, or by an exchange. */
const swapType: ActionType = {
  events: {
    pending: 'wallet_action.swap.created',
    succeeded: 'wallet_action.swap.succeeded',
    rejected: 'wallet_action.swap.rejected',
    failed: 'wallet_action.swap.failed',
  },
  pending: { ...nothing, gas: null },
  notInEvents: ['estimated_gas', 'estimated_fees', 'destination_address', 'destination_caip2', 'gas', 'fees'],
  onlyInSuccess: ['output_amount'],
  outcome({ status, steps, terms }) {
    const { spent, received } = terms as SwapOutcomeTerms;
    const gas = gasPaid(steps);
    if (status !== 'succeeded') return { ...nothing, gas };
    if (spent === undefined || received === undefined) return { ...deliveryOf(steps), gas };
    return {
      input_amount: String(movedIn(steps, spent)),
      output_amount: String(movedIn(steps, received)),
      fees: null,
      gas,
    };
  },
  failureDetails({ steps, terms }) {
    const { allowance } = terms as SwapOutcomeTerms;
    const approval = steps.at(-2);
    if (allowance === undefined || approval === undefined || !hasHappened(approval)) return undefined;
    return { allowance };
  },
  providerFee({ steps, terms }) {
    return relayerFeeIn(steps, (terms as SwapOutcomeTerms).feeAsset);
  },
};

/** A transfer: one transaction, or the deposit to an exchange and the payment of the exchange. */
const transferType: ActionType = {
  events: {
    pending: 'wallet_action.transfer.created',
    succeeded: 'wallet_action.transfer.succeeded',
    rejected: 'wallet_action.transfer.rejected',
    failed: 'wallet_action.transfer.failed',
  },
  pending: { destination_amount: null, gas: null, fees: null },
  notInEvents: [
    'estimated_gas',
    'estimated_fees',
    'destination_amount',
    'destination_asset',
    'destination_chain',
    'gas',
    'fees',
    'amount_type',
  ],
  outcome({ status, steps, details }) {
    // A plain transfer arrives in full.
    const delivered = deliveryOf(steps) ?? { destination_amount: details.source_amount, fees: [] };
    return {
      ...(status === 'succeeded' ? delivered : { destination_amount: null, fees: null }),
      gas: gasPaid(steps),
    };
  },
  providerFee: ({ steps, details }) => relayerFeeIn(steps, details.source_asset),
};

/** The definitions of the types of wallet actions that can be started. */
const actionTypes: Partial<Readonly<Record<WalletActionType, ActionType>>> = {
  payout: payoutType,
  transfer: transferType,
  earn_deposit: earnDepositType,
  earn_withdraw: earnWithdrawType,
  earn_incentive_claim: earnIncentiveClaimType,
  earn_fee_collect: earnFeeCollectType,
  swap: swapType,
};

export function actionTypeOf(type: WalletActionType): ActionType {
  const definition = actionTypes[type];
  assert(definition !== undefined, `no definition of actions of type ${type}`);
  return definition;
}
