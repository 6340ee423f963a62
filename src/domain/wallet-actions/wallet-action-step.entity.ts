import { defineEntity, p } from '@mikro-orm/core';

/** One step of a wallet action. */
export const WalletActionStepEntity = defineEntity({
  name: 'WalletActionStep',
  tableName: 'wallet_action_steps',
  properties: {
    actionId: p.text().primary(),
    /** From 0. */
    position: p.integer().primary(),
    /** The contract's name of its kind, `evm_transaction` for instance. */
    type: p.text(),
    /** The transaction that it is; its state is the step's. */
    transactionId: p.text().nullable(),
  },
  indexes: [
    {
      name: 'wallet_action_steps_by_transaction',
      properties: ['transactionId'],
      where: 'transaction_id is not null',
    },
  ],
});
