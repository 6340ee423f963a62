import type { ActionType } from './action-type.ts';

/** A payout: the deposit to a provider, and its payment to a bank. */
export const payoutType: ActionType = {
  events: {
    pending: 'wallet_action.payout.created',
    succeeded: 'wallet_action.payout.succeeded',
    rejected: 'wallet_action.payout.rejected',
    failed: 'wallet_action.payout.failed',
  },
  pending: {},
  ifNotStored: { developer_fee_percent: '0' },
  // CHOICE: events of payouts do not have the fee, as those of the published service.
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
