import { defineEntity, p } from '@mikro-orm/core';
import type { Selectable } from 'kysely';
import type { WalletActionStatus, WalletActionType } from '../../../generated/schemas.ts';
import type { Tables } from '../../tables.ts';

export const WalletActionStepEntity = defineEntity({
  name: 'WalletActionStep',
  tableName: 'wallet_action_steps',
  properties: {
    actionId: p.text().primary(),
    /** The number of the step in its action, counting from 0. */
    position: p.integer().primary(),
    /** The step type of the API, for example `evm_transaction`. */
    type: p.text(),
    // Set only for a step that is one of our transactions.
    /** The transaction of this step. Its state is the state of the step. */
    transactionId: p.text().strictNullable(),
    /** JSON of the movements that the transaction caused, once they are read. */
    effects: p.text().strictNullable(),
    /** The block from which `effects` were read. A reorganization may move the transaction to another block. */
    effectsBlockNumber: p.bigint('number').strictNullable(),
    // Set only for a step that another system carries out.
    /** `exchange` or `payout`. */
    externalKind: p.text().strictNullable(),
    /** The id in the other system, for example of a quote or a payout. */
    externalId: p.text().strictNullable(),
    /** `waiting`, `done`, `given_back` or `refused`. */
    externalStatus: p.text().strictNullable(),
    /** The chain of the payment; null for a bank payment. */
    caip2: p.text().strictNullable(),
    /** JSON of the action's wire fields that change when the step is done. */
    delivery: p.text().strictNullable(),
    /** The hash of the payment, or of the refund on the deposit's chain. */
    hash: p.text().strictNullable(),
    /** Why the step ended without the payment. */
    failureReason: p.text().strictNullable(),
    /**
     * When the external step is polled next, or the effects are read. Null if there is nothing to poll or read, and
     * after the action has ended.
     */
    nextCheckAtMs: p.bigint('number').strictNullable(),
    /** The process that last moved `nextCheckAtMs` to claim the step. */
    claimedBy: p.text().strictNullable(),
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

/** An action of a wallet, such as a transfer, a swap or a deposit. Its steps are in `wallet_action_steps`. */
export const WalletActionEntity = defineEntity({
  name: 'WalletAction',
  tableName: 'wallet_actions',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    walletId: p.text(),
    /** A `WalletActionType` of the API. */
    type: p.text(),
    /** `pending`, `succeeded`, `rejected` or `failed`. */
    status: p.text(),
    /** The caller's nonce, which prevents replays. */
    nonce: p.text().strictNullable(),
    referenceId: p.text().strictNullable(),
    /** JSON of the wire fields at creation that are specific to the type. */
    details: p.text(),
    /**
     * JSON of values that are needed to compute the outcome and that no response shows. Null when no values are needed.
     */
    terms: p.text().strictNullable(),
    /** JSON of the wire fields that were set when the action settled; null while it is pending. */
    outcome: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    endedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'wallet_actions_by_age', properties: ['walletId', 'createdAtMs', 'id'] },
    { name: 'wallet_actions_pending', properties: ['createdAtMs', 'id'], where: "status = 'pending'" },
  ],
  uniques: [
    {
      name: 'wallet_actions_nonce',
      properties: ['walletId', 'nonce'],
      where: 'nonce is not null',
    },
  ],
});

/** A row of `wallet_actions` with the column names of the database. */
export type WalletActionRow = Omit<Selectable<Tables['wallet_actions']>, 'status' | 'type'> & {
  readonly type: WalletActionType;
  readonly status: WalletActionStatus;
};

/** All columns, for reads of whole rows. A prepared `select *` would break when a migration adds a column. */
export const walletActionColumns = [
  'id',
  'app_id',
  'wallet_id',
  'type',
  'status',
  'nonce',
  'reference_id',
  'details',
  'terms',
  'outcome',
  'created_at_ms',
  'ended_at_ms',
] as const satisfies readonly (keyof WalletActionRow)[];
