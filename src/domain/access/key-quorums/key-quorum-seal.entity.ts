import { defineEntity, p } from '@mikro-orm/core';

/** What the vault has sealed under the changes of a key quorum: it shows that the vault has seen each of them. */
export const KeyQuorumSealEntity = defineEntity({
  name: 'KeyQuorumSeal',
  tableName: 'key_quorum_seals',
  properties: {
    /** The key quorum's id. */
    id: p.text().primary(),
    appId: p.text(),
    /** Of the changes, hex. */
    digest: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'key_quorum_seals_by_master_key', properties: ['masterKeyId'] }],
});
