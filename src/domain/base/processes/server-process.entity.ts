import { defineEntity, p } from '@mikro-orm/core';

/** A running server process. The others take over the work of one that no longer counts its beats. */
export const ServerProcessEntity = defineEntity({
  name: 'ServerProcess',
  tableName: 'server_processes',
  properties: {
    id: p.text().primary(),
    /** Goes up about once per second. Only whether it changes counts: the clocks of processes may differ. */
    beats: p.bigint('number'),
    startedAtMs: p.bigint('number'),
    /** 1: it takes the locks of `src/storage/locks.ts`. 0: a server from before migration 30. */
    keyedLocks: p.integer().default(0),
  },
});
