import { defineEntity, p } from '@mikro-orm/core';

/**
 * The secret with which `src/storage/locks.ts` hashes the names of locks. On PostgreSQL, the migration creates the only
 * row. SQLite needs no locks, so it has no row.
 */
export const LockSecretEntity = defineEntity({
  name: 'LockSecret',
  tableName: 'lock_secrets',
  properties: {
    /** Always `names`, because the secret serves only to hash names. */
    id: p.text().primary(),
    secret: p.text(),
  },
});

/** A running server process. When its heartbeat stops, other processes take over its work. */
export const ServerProcessEntity = defineEntity({
  name: 'ServerProcess',
  tableName: 'server_processes',
  properties: {
    id: p.text().primary(),
    /**
     * The heartbeat: increases about once per second. Other processes only check whether it changes, because the clocks
     * of processes may differ.
     */
    beats: p.bigint('number'),
    startedAtMs: p.bigint('number'),
    /** 1 if the process takes the locks of `src/storage/locks.ts`, 0 for a server from before migration 30. */
    keyedLocks: p.integer().default(0),
  },
});
