import { defineEntity, p } from '@mikro-orm/core';

/** The secret of a policy that has had an owner: wallets pin it, and the vault seals it under the policy's content. */
export const PolicySealEntity = defineEntity({
  name: 'PolicySeal',
  tableName: 'policy_seals',
  properties: {
    /** The policy's id. */
    id: p.text().primary(),
    appId: p.text(),
    /** JSON of the `PolicyContent` under which it is sealed. */
    content: p.text(),
    /** What wallets pin. */
    name: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'policy_seals_by_master_key', properties: ['masterKeyId'] }],
});
