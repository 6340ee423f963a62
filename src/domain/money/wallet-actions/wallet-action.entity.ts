import { defineEntity, p } from '@mikro-orm/core';

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
