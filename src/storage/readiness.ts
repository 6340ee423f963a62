import type { Pool } from 'pg';
import { markUnavailable } from './database-errors.ts';
import type { Orm } from './open-database.ts';
import { postgresPool } from './postgres-dialect.ts';
import { findSchemaFault } from './schema/identify-database.ts';

/** Checks whether PostgreSQL can serve requests. */
export interface Readiness {
  /** Rejects with the reason if requests cannot be served. */
  check(): Promise<void>;
  /**
   * Returns whether all connections of the pool are busy, and at least as many requests wait for one. Does not query
   * the database.
   */
  isExhausted(): boolean;
}

const STEP_MS = 1_000;

type Ask = <Row>(sql: string) => Promise<readonly Row[]>;

/**
 * Opens a connection outside the pool, with its own time limits. It neither waits for requests nor takes a connection
 * from them.
 */
export function besideThePool(url: string): { ask: Ask; close(): Promise<void> } {
  const own = postgresPool({ connectionString: url, max: 1 }, () => undefined, {
    connectMs: STEP_MS,
    statementMs: STEP_MS,
    lockMs: STEP_MS,
    idleInTransactionMs: STEP_MS,
    silenceMs: STEP_MS,
  });
  const ask: Ask = async (sql) => {
    try {
      return (await own.query(sql)).rows;
    } catch (error) {
      throw markUnavailable(error);
    }
  };
  return { ask, close: () => own.end() };
}

/**
 * Returns the readiness check of PostgreSQL.
 * @param pool the pool that serves requests.
 */
export function watchReadiness(orm: Orm, { ask, pool }: { ask: Ask; pool: Pool }): Readiness {
  const isExhausted = (): boolean => pool.waitingCount >= (pool.options.max ?? 1) && pool.idleCount === 0;
  return {
    isExhausted,
    async check() {
      if (isExhausted()) {
        throw new Error(
          `all ${pool.options.max} connections are busy and ${pool.waitingCount} requests wait for one`,
        );
      }
      const [state] = await ask<{ recovering: boolean; read_only: string }>(
        "select pg_is_in_recovery() as recovering, current_setting('transaction_read_only') as read_only",
      );
      if (state === undefined || state.recovering || state.read_only === 'on') {
        throw new Error('the database is read-only');
      }
      const fault = await findSchemaFault(orm, ask);
      if (fault !== undefined) throw new Error(fault);
    },
  };
}
