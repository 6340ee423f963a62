import { defineEntity, p } from '@mikro-orm/core';

/**
 * The secret with which `src/storage/locks.ts` hashes names: one row, which the migration creates on PostgreSQL. SQLite
 * has none, because it needs no locks.
 */
export const LockSecretEntity = defineEntity({
  name: 'LockSecret',
  tableName: 'lock_secrets',
  properties: {
    /** Always `names`. */
    id: p.text().primary(),
    secret: p.text(),
  },
});

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
