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
    transactionId: p.text().strictNullable(),
    // Of a step that the exchange does, everything below.
    /** The chain that it pays on. */
    caip2: p.text().strictNullable(),
    /** The exchange's name of what it quoted. */
    quoteId: p.text().strictNullable(),
    /** JSON of the wire fields that it changes when it has paid. */
    delivery: p.text().strictNullable(),
    /** `waiting`, `paid` or `refunded`. */
    exchangeStatus: p.text().strictNullable(),
    /** Of the payment, or of the repayment on the chain of the deposit. */
    hash: p.text().strictNullable(),
    /** Why it gave the deposit back. */
    failureReason: p.text().strictNullable(),
    /** When the exchange is asked again; null when it is not asked any more. */
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
