import { defineEntity, p } from '@mikro-orm/core';

/** The payment instructions of a fiat deposit account, sealed because they contain its numbers. */
export const FiatDepositInstructionsEntity = defineEntity({
  name: 'FiatDepositInstructions',
  tableName: 'fiat_deposit_instructions',
  properties: {
    /** The account's id. */
    id: p.text().primary(),
    appId: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'fiat_deposit_instructions_by_master_key', properties: ['masterKeyId'] }],
});
