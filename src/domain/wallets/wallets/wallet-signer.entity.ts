import { defineEntity, p } from '@mikro-orm/core';

/** An additional signer of a wallet, indexed by key quorum and by policy. */
export const WalletSignerEntity = defineEntity({
  name: 'WalletSigner',
  tableName: 'wallet_signers',
  properties: {
    walletId: p.text().primary(),
    /** Position in the wallet's `additional_signers`. */
    position: p.integer().primary(),
    /** The key quorum that may sign. */
    signerId: p.text(),
    overridePolicyId: p.text().strictNullable(),
  },
  indexes: [
    { name: 'wallet_signers_by_signer', properties: ['signerId'] },
    {
      name: 'wallet_signers_by_policy',
      properties: ['overridePolicyId'],
      where: 'override_policy_id is not null',
    },
  ],
});
