import { defineEntity, p } from '@mikro-orm/core';

/** What a wallet was told to do: a transfer, a swap, a deposit. What it is made of stands in `wallet_action_steps`. */
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
    /** The caller's, against replays. */
    nonce: p.text().strictNullable(),
    referenceId: p.text().strictNullable(),
    /** JSON of the type's own wire fields, as they were when it began. */
    details: p.text(),
    /** JSON of the wire fields that its end changed; null while it is pending. */
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
