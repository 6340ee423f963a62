import { defineEntity, p } from '@mikro-orm/core';
import type { Selectable } from 'kysely';
import type { WalletActionStatus, WalletActionType } from '../../../generated/schemas.ts';
import type { Tables } from '../../tables.ts';

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
    // Only for a step that is our transaction.
    /** Its state is the step's state. */
    transactionId: p.text().strictNullable(),
    /** JSON of the movements that its transaction caused, once they are read. */
    effects: p.text().strictNullable(),
    /** The block that `effects` were read from: a reorganization may move the transaction to another one. */
    effectsBlockNumber: p.bigint('number').strictNullable(),
    // Only for a step of another system.
    /** `exchange` or `payout`. */
    externalKind: p.text().strictNullable(),
    /** Its id there: a quote, a payout. */
    externalId: p.text().strictNullable(),
    /** `waiting`, `done`, `given_back` or `refused`. */
    externalStatus: p.text().strictNullable(),
    /** The chain that it pays on; null for a bank. */
    caip2: p.text().strictNullable(),
    /** JSON of the wire fields of the action that change when it is done. */
    delivery: p.text().strictNullable(),
    /** Hash of the payment, or of the refund on the deposit's chain. */
    hash: p.text().strictNullable(),
    /** Why the deposit was given back or refused. */
    failureReason: p.text().strictNullable(),
    /**
     * When the external step is polled, or the effects are read, next; null when neither is done, and after the action
     * has ended.
     */
    nextCheckAtMs: p.bigint('number').strictNullable(),
    /** The process that moved it last to claim the step. */
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

/** An action of a wallet: a transfer, a swap, a deposit. Its steps are in `wallet_action_steps`. */
export const WalletActionEntity = defineEntity({
  name: 'WalletAction',
  tableName: 'wallet_actions',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    walletId: p.text(),
    /** The contract's `WalletActionType`. */
    type: p.text(),
    /** `pending`, `succeeded`, `rejected` or `failed`. */
    status: p.text(),
    /** The caller's nonce, which prevents replays. */
    nonce: p.text().strictNullable(),
    referenceId: p.text().strictNullable(),
    /** JSON of the type's own wire fields as of its creation. */
    details: p.text(),
    /** JSON of what the type's outcome is computed from and no response shows; null when it needs nothing more. */
    terms: p.text().strictNullable(),
    /** JSON of the wire fields set when it settled; null while pending. */
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

/** A row of `wallet_actions`, columns as they are stored. */
export type WalletActionRow = Omit<Selectable<Tables['wallet_actions']>, 'status' | 'type'> & {
  readonly type: WalletActionType;
  readonly status: WalletActionStatus;
};

/** Every column, for reads of whole rows; never `select *`, which breaks when a migration adds one. */
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
