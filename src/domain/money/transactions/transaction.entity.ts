import { defineEntity, p } from '@mikro-orm/core';

/**
 * A transaction that a wallet sends: its signed bytes, which are broadcast until the chain has them, and its state.
 */
export const TransactionEntity = defineEntity({
  name: 'Transaction',
  tableName: 'transactions',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    walletId: p.text(),
    caip2: p.text(),
    /** The wallet's address as it is stored; several wallets may hold the same key. */
    sender: p.text(),
    /** The rpc method or wallet action that sent it. */
    method: p.text(),
    /** One of `transaction-state.ts`. */
    status: p.text(),
    /** Null until a sponsored transaction is included. */
    transactionHash: p.text().strictNullable(),
    userOperationHash: p.text().strictNullable(),
    /** 0 or 1. */
    isSponsored: p.integer().default(0),
    referenceId: p.text().strictNullable(),
    /**
     * The earlier transaction, of the same wallet action or with a lower nonce: this one is broadcast only after the
     * chain has that one.
     */
    afterTransactionId: p.text().strictNullable(),
    /** EVM: the sender's nonce. */
    nonce: p.bigint('number').strictNullable(),
    /** Never changed, so broadcasting again can never send a different transaction. */
    signedBytes: p.blob(),
    /** JSON of what was signed, in the contract's names; EVM only. */
    transactionRequest: p.text().strictNullable(),
    /** For a plain transfer: the contract or mint, or `native`. */
    movedToken: p.text().strictNullable(),
    movedTo: p.text().strictNullable(),
    /** Base units, decimal. */
    movedAmount: p.text().strictNullable(),
    blockNumber: p.bigint('number').strictNullable(),
    blockTimestampSeconds: p.bigint('number').strictNullable(),
    /** Smallest unit of the native asset, decimal. */
    feePaid: p.text().strictNullable(),
    /** Why it failed or reverted, as reported by the chain. */
    failureReason: p.text().strictNullable(),
    /** 0 or 1: `transaction.still_pending` was recorded. */
    isSlowTold: p.integer().default(0),
    /** 0 or 1: the `wallet.funds_*` events were recorded. */
    areFundsTold: p.integer().default(0),
    /** 0 or 1: the cost of a sponsored transaction was recorded. */
    isGasTold: p.integer().default(0),
    /** JSON of `Doubt`: what nodes say against the state, until it counts. */
    doubt: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
    /** When its chain is polled next; null once the state is final. Polling moves it, which serves as a lease. */
    nextCheckAtMs: p.bigint('number').strictNullable(),
    /** The process that moved it last to claim the transaction. */
    claimedBy: p.text().strictNullable(),
  },
  indexes: [
    {
      name: 'transactions_by_reference',
      properties: ['appId', 'referenceId', 'createdAtMs', 'id'],
      where: 'reference_id is not null',
    },
    { name: 'transactions_by_wallet', properties: ['walletId', 'caip2', 'createdAtMs', 'id'] },
    { name: 'transactions_by_nonce', properties: ['caip2', 'sender', 'nonce'], where: 'nonce is not null' },
    { name: 'transactions_by_hash', properties: ['caip2', 'transactionHash'] },
    {
      name: 'transactions_due',
      properties: ['nextCheckAtMs', 'id'],
      where: 'next_check_at_ms is not null',
    },
  ],
});
