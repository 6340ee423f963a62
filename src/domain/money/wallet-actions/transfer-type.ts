import type { ActionType } from './action-type.ts';
import { deliveryOf, gasPaid, relayerFeeIn } from './outcomes.ts';

/** A transfer, which one transaction makes, or the deposit to an exchange and its payment. */
export const transferType: ActionType = {
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
