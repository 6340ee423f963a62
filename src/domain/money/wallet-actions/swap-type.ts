import type { MovementPattern } from '../../../ports/swap-routes.ts';
import type { ActionType } from './action-type.ts';
import { deliveryOf, gasPaid, movedIn, relayerFeeIn } from './outcomes.ts';
import { hasHappened } from './wallet-action-steps.ts';

/** What the outcome of a swap is computed from. */
export interface SwapOutcomeTerms {
  /** Of a swap by a router: the movements that show what was spent and received. */
  readonly spent?: MovementPattern;
  readonly received?: MovementPattern;
  /** The allowance that the step before the swap gave to the router. */
  readonly allowance?: {
    readonly token_address: string;
    readonly spender: string;
    readonly raw_amount: string;
  };
  /** Of a swap by an exchange: the asset that its fees are in. */
  readonly feeAsset?: string;
}

const nothing = { input_amount: null, output_amount: null, fees: null };

/** A swap: by a router on one chain, or by an exchange. */
export const swapType: ActionType = {
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
