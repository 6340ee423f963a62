import { defineEntity, p } from '@mikro-orm/core';

/** The key under which the vault vouches for the keys of an app's users. Key quorums pin its name. */
export const VoucherKeyEntity = defineEntity({
  name: 'VoucherKey',
  tableName: 'voucher_keys',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** What key quorums pin. */
    name: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'voucher_keys_by_master_key', properties: ['masterKeyId'] }],
  uniques: [{ name: 'voucher_keys_app', properties: ['appId'] }],
});
