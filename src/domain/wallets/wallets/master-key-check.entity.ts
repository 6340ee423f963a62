import { defineEntity, p } from '@mikro-orm/core';

/**
 * A known value sealed under a master key, so that a wrong key is detected at start and not at the first signature.
 */
export const MasterKeyCheckEntity = defineEntity({
  name: 'MasterKeyCheck',
  tableName: 'master_key_checks',
  properties: {
    masterKeyId: p.text().primary(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
  },
});
