import { defineEntity, p } from '@mikro-orm/core';

/** One step of a wallet action. */
export const WalletActionStepEntity = defineEntity({
  name: 'WalletActionStep',
  tableName: 'wallet_action_steps',
  properties: {
    actionId: p.text().primary(),
    /** From 0. */
    position: p.integer().primary(),
    /** The contract's step type, for example `evm_transaction`. */
    type: p.text(),
    /** The step's transaction; its state is the step's state. */
    transactionId: p.text().strictNullable(),
    // Of a step that the exchange does, everything below.
    /** The chain that it pays on. */
    caip2: p.text().strictNullable(),
    /** The exchange's quote id. */
    quoteId: p.text().strictNullable(),
    /** JSON of the wire fields that change when the exchange has paid. */
    delivery: p.text().strictNullable(),
    /** `waiting`, `paid` or `refunded`. */
    exchangeStatus: p.text().strictNullable(),
    /** Hash of the payment, or of the refund on the deposit's chain. */
    hash: p.text().strictNullable(),
    /** Why the deposit was refunded. */
    failureReason: p.text().strictNullable(),
    /** When the exchange is polled next; null when it is no longer polled. */
    nextCheckAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    {
      name: 'wallet_action_steps_by_transaction',
      properties: ['transactionId'],
      where: 'transaction_id is not null',
    },
    {
      name: 'wallet_action_steps_due',
      properties: ['nextCheckAtMs'],
      where: 'next_check_at_ms is not null',
    },
  ],
});
