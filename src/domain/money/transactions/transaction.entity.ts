import { defineEntity, p } from '@mikro-orm/core';
import type { Selectable } from 'kysely';
import type { BlockchainTransactionStatus } from '../../../generated/schemas.ts';
import type { Tables } from '../../tables.ts';

/** An EIP-7702 authorization in a transaction. Like a transaction, it uses a nonce of the account that signed it. */
export const TransactionAuthorizationEntity = defineEntity({
  name: 'TransactionAuthorization',
  tableName: 'transaction_authorizations',
  properties: {
    transactionId: p.text().primary(),
    /** Counts from 0. */
    position: p.integer().primary(),
    caip2: p.text(),
    /** The account that delegates, in the notation of wallet addresses. */
    authority: p.text(),
    /** The nonce of the account that the authorization uses. */
    nonce: p.bigint('number'),
    /** The smart contract to which the account delegates; 0x hex, lower case. */
    contract: p.text(),
  },
  indexes: [{ name: 'transaction_authorizations_by_nonce', properties: ['caip2', 'authority', 'nonce'] }],
});

/** A transaction of a wallet: its state, and its signed bytes, which are broadcast until the chain has them. */
export const TransactionEntity = defineEntity({
  name: 'Transaction',
  tableName: 'transactions',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    walletId: p.text(),
    caip2: p.text(),
    /** The wallet's address as it is stored. Several wallets may have the same key. */
    sender: p.text(),
    /** The RPC method or wallet action that sent the transaction. */
    method: p.text(),
    /** A `TransactionStatus`. */
    status: p.text(),
    /**
     * The hash in the notation of the chain. Null until a user operation is included, because only then its transaction
     * exists.
     */
    transactionHash: p.text().strictNullable(),
    userOperationHash: p.text().strictNullable(),
    /** 1 if sponsored, otherwise 0. */
    isSponsored: p.integer().default(0),
    referenceId: p.text().strictNullable(),
    /**
     * The id of the earlier transaction, of the same wallet action or with a lower nonce. This transaction is broadcast
     * only after the chain has the earlier one.
     */
    afterTransactionId: p.text().strictNullable(),
    /** The sender's nonce on EVM chains. */
    nonce: p.bigint('number').strictNullable(),
    /** The signed bytes. They never change, so repeated broadcasts can never send a different transaction. */
    signedBytes: p.blob(),
    /** JSON of the signed transaction, with the field names of the API document; EVM only. */
    transactionRequest: p.text().strictNullable(),
    /** For a plain transfer: the token's smart contract or mint, or `native`. */
    movedToken: p.text().strictNullable(),
    movedTo: p.text().strictNullable(),
    /** The moved amount in base units, decimal. */
    movedAmount: p.text().strictNullable(),
    blockNumber: p.bigint('number').strictNullable(),
    blockTimestampSeconds: p.bigint('number').strictNullable(),
    /** The paid fee in base units of the native asset, decimal. */
    feePaid: p.text().strictNullable(),
    /** Why the transaction failed, reverted or was replaced. */
    failureReason: p.text().strictNullable(),
    /** 1 once `transaction.still_pending` was recorded, otherwise 0. */
    isSlowTold: p.integer().default(0),
    /** 1 once the `wallet.funds_*` events were recorded, otherwise 0. */
    areFundsTold: p.integer().default(0),
    /** 1 once the cost of a sponsored transaction was recorded, otherwise 0. */
    isGasTold: p.integer().default(0),
    /** JSON of a `Doubt`: reports of nodes that contradict the state and do not count yet. */
    doubt: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
    /**
     * When the chain is polled next; null once the state is final. Polling moves this time, which serves as a lease.
     */
    nextCheckAtMs: p.bigint('number').strictNullable(),
    /** The process that last moved `nextCheckAtMs` to claim the transaction; null before the first claim. */
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

export type TransactionStatus = BlockchainTransactionStatus;

/**
 * The states that may follow each state:
 * - `pending`: signed and stored, not known to have reached the chain.
 * - `broadcasted`: a node accepted it.
 * - `confirmed`: included and successful.
 * - `finalized`: no reorganization can remove it.
 * - `execution_reverted`: included, but only its fee took effect.
 * - `failed`: it can never be included.
 * - `replaced`: another transaction used its nonce.
 * - `provider_error`: the bundler of a sponsored transaction lost it.
 *
 * CHOICE: when a reorganization drops the block of a confirmed or reverted transaction, the transaction becomes
 * `broadcasted` again. Callers that need certainty wait for `finalized`.
 */
const followers: Readonly<Record<TransactionStatus, readonly TransactionStatus[]>> = {
  pending: ['broadcasted', 'failed', 'replaced', 'provider_error'],
  broadcasted: ['confirmed', 'execution_reverted', 'failed', 'replaced', 'provider_error'],
  confirmed: ['finalized', 'broadcasted', 'execution_reverted', 'failed', 'replaced'],
  execution_reverted: ['broadcasted', 'confirmed', 'failed', 'replaced'],
  finalized: [],
  failed: [],
  replaced: [],
  provider_error: [],
};

/** States of a transaction that is not in a block yet. */
export const openStatuses = ['pending', 'broadcasted'] as const satisfies readonly TransactionStatus[];

/** States that free the nonce, because the transaction was never included and never will be. */
export const releasedStatuses = ['failed', 'provider_error'] as const satisfies readonly TransactionStatus[];

export const neverHasEffect: ReadonlySet<string | null> = new Set<TransactionStatus>([
  ...releasedStatuses,
  'replaced',
]);

/** Returns whether no other state can follow. */
export function isTerminal(status: TransactionStatus): boolean {
  return followers[status].length === 0;
}

/**
 * Returns the states that a transaction passes through from one state to another, including the last. Each of them is
 * recorded. The list is empty when the state does not change, and undefined when the transition is not allowed.
 */
export function wayTo(
  from: TransactionStatus,
  to: TransactionStatus,
): readonly TransactionStatus[] | undefined {
  const ways = new Map<TransactionStatus, readonly TransactionStatus[]>([[from, []]]);
  // A breadth-first search: the map grows while it is iterated, so each state is first reached by the shortest path.
  for (const [status, way] of ways) {
    for (const next of followers[status]) if (!ways.has(next)) ways.set(next, [...way, next]);
  }
  return ways.get(to);
}

/**
 * A row of `transactions` with the column names of the database.
 *
 * KYSELY: claims join each transaction with its predecessor and lock only the first (`skip locked`). Other statements
 * join transactions with steps, authorizations and members of owners. All statements that read whole transactions
 * therefore share this one form of a row.
 */
export type TransactionRow = Omit<Selectable<Tables['transactions']>, 'status' | 'claimed_by'> & {
  readonly status: TransactionStatus;
};

/** All columns, for reads of whole rows. A prepared `select *` would break when a migration adds a column. */
export const transactionColumns = [
  'id',
  'app_id',
  'wallet_id',
  'caip2',
  'sender',
  'method',
  'status',
  'transaction_hash',
  'user_operation_hash',
  'is_sponsored',
  'reference_id',
  'after_transaction_id',
  'nonce',
  'signed_bytes',
  'transaction_request',
  'moved_token',
  'moved_to',
  'moved_amount',
  'block_number',
  'block_timestamp_seconds',
  'fee_paid',
  'failure_reason',
  'is_slow_told',
  'are_funds_told',
  'is_gas_told',
  'doubt',
  'created_at_ms',
  'updated_at_ms',
  'next_check_at_ms',
] as const satisfies readonly (keyof TransactionRow)[];

/** How far a chain's transfers have been read and reported. A chain without a row has not been read yet. */
export const ChainPositionEntity = defineEntity({
  name: 'ChainPosition',
  tableName: 'chain_positions',
  properties: {
    caip2: p.text().primary(),
    /** `TransferPage.position` of the last recorded page; empty before the first page. */
    position: p.text(),
    /** Until this time, only the process in `claimedBy` may read the next page. */
    leasedUntilMs: p.bigint('number').default(0),
    /** The process that last claimed the chain. */
    claimedBy: p.text().strictNullable(),
  },
});
