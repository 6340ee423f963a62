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
    /**
     * The number of the move for which this process has stopped its work on the moving app; 0 while it works on every
     * app. See `AppMoveEntity`.
     */
    drainedMove: p.bigint('number').defaultRaw('0'),
  },
});

/**
 * The last move of an app out of this database or into it:
 *
 * - `draining`: the app is about to leave. Servers stop their work on it.
 * - `taken`: the app has left. Its rows are in `moved_rows`.
 * - `moved`: the app has left, and its rows are in the other cell.
 * - `arrived`: the app has come from the other cell.
 * - `aborted`: the app was about to leave, but has stayed.
 * - `refused`: the app was about to come, but this move can no longer bring it.
 */
export const AppMoveEntity = defineEntity({
  name: 'AppMove',
  tableName: 'app_moves',
  properties: {
    appId: p.text().primary(),
    /** Increases with each change in this table, so that servers read only the changes that they do not know. */
    number: p.bigint('number'),
    state: p.text(),
    /** Identifies the move in both cells. It begins with the first number of the move. */
    moveId: p.text(),
    otherCell: p.text(),
    changedAtMs: p.bigint('number'),
  },
});

/** A row of an app that has left: it was taken out of its table, and is not in the other cell yet. */
export const MovedRowEntity = defineEntity({
  name: 'MovedRow',
  tableName: 'moved_rows',
  properties: {
    appId: p.text().primary(),
    /** The name of the row's table. */
    place: p.text().primary(),
    /** The position of the row in its table. */
    position: p.bigint('number').primary(),
    /** The row as JSON. */
    content: p.text(),
  },
});
