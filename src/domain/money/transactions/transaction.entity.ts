import { defineEntity, p } from '@mikro-orm/core';

/** A transaction that a wallet sends: its signed bytes, which go out again until the chain has them, and its life. */
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
    /** Null while a sponsored one is on its way. */
    transactionHash: p.text().strictNullable(),
    userOperationHash: p.text().strictNullable(),
    /** 0 or 1. */
    isSponsored: p.integer().default(0),
    referenceId: p.text().strictNullable(),
    /** EVM: the number it takes of the sender. */
    nonce: p.bigint('number').strictNullable(),
    /** Never changed, so that sending again can never send another one. */
    signedBytes: p.blob(),
    /** JSON of what was signed, in the contract's names; EVM only. */
    transactionRequest: p.text().strictNullable(),
    /** Of a plain transfer: the contract or mint, or `native`. */
    movedToken: p.text().strictNullable(),
    movedTo: p.text().strictNullable(),
    /** Base units, decimal. */
    movedAmount: p.text().strictNullable(),
    blockNumber: p.bigint('number').strictNullable(),
    blockTimestampSeconds: p.bigint('number').strictNullable(),
    /** Smallest unit of the native asset, decimal. */
    feePaid: p.text().strictNullable(),
    /** Why it failed or reverted, in the chain's words. */
    failureReason: p.text().strictNullable(),
    /** 0 or 1: `transaction.still_pending` was told. */
    isSlowTold: p.integer().default(0),
    /** 0 or 1: the `wallet.funds_*` events were told. */
    areFundsTold: p.integer().default(0),
    /** 0 or 1: what a sponsored one cost was told. */
    isGasTold: p.integer().default(0),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
    /** When its chain is asked next; null once nothing can change any more. Whoever asks puts it off, as a lease. */
    nextCheckAtMs: p.bigint('number').strictNullable(),
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
