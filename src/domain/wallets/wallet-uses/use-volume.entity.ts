import { defineEntity, p } from '@mikro-orm/core';

/** The size of an app's requests and traces recorded on one day, whether stored in full or as digests. */
export const UseVolumeEntity = defineEntity({
  name: 'UseVolume',
  tableName: 'use_volumes',
  properties: {
    appId: p.text().primary(),
    /** Days since 1970, UTC. */
    day: p.integer().primary(),
    bytes: p.bigint('number'),
  },
});
