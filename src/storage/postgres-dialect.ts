import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { Pool, type PoolConfig } from 'pg';
import { driverOf, type OwnDialect, type UnitConnection } from './own-kysely.ts';
import { type HungOptions, keepHung } from './postgres/hung-connections.ts';
import { getTypeParser } from './postgres/pipelining.ts';
import { type ConnectionTools, createUnitConnection, rememberNames } from './postgres/unit-connection.ts';

/** Limits of each step of a database access, ms. */
export interface PostgresTimeouts {
  /** For acquiring a connection of the pool, existing or new. */
  readonly connectMs: number;
  /** For one statement, measured by the server. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** For the pause between two statements of a transaction. */
  readonly idleInTransactionMs: number;
  /** For one response, measured by the client. A connection that is silent for longer is given up. */
  readonly silenceMs: number;
}

/** CHOICE: a request waits for the database no longer than a typical client waits for the request. */
export const defaultTimeouts: PostgresTimeouts = {
  connectMs: 3_000,
  statementMs: 10_000,
  lockMs: 5_000,
  idleInTransactionMs: 30_000,
  silenceMs: 12_000,
};

/**
 * Whether the URL leads to PgBouncer in transaction mode: `?pgbouncer=true`. A session then lasts for one transaction,
 * so statements must not be named, and each transaction must repeat its settings.
 */
export function isPooledByTransaction(url: string | undefined): boolean {
  return url !== undefined && URL.canParse(url) && new URL(url).searchParams.get('pgbouncer') === 'true';
}

/** The state of a session that outlasts a transaction. */
export interface Session {
  readonly areStatementsNamed: boolean;
  /** SQL for the settings of each transaction, starting with `;`, or empty. */
  readonly settings: string;
}

const wholeSession: Session = { areStatementsNamed: true, settings: '' };

export function sessionOf(url: string, timeouts: PostgresTimeouts | undefined): Session {
  if (!isPooledByTransaction(url)) return wholeSession;
  if (timeouts === undefined) return { areStatementsNamed: false, settings: '' };
  const { statementMs, lockMs, idleInTransactionMs } = timeouts;
  const settings = [
    `set local statement_timeout = ${statementMs}`,
    `set local lock_timeout = ${lockMs}`,
    `set local idle_in_transaction_session_timeout = ${idleInTransactionMs}`,
  ];
  return { areStatementsNamed: false, settings: `; ${settings.join('; ')}` };
}

/**
 * Creates a pool. Without `timeouts`, a statement may run for any time. Without `silenceMs`, a client waits for any
 * time.
 */
export function postgresPool(
  config: PoolConfig,
  onError: (error: Error) => void,
  timeouts: (Omit<PostgresTimeouts, 'silenceMs'> & { readonly silenceMs: number | undefined }) | undefined,
): Pool {
  const pool = new Pool({
    ...config,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    ...(timeouts === undefined
      ? {}
      : {
          connectionTimeoutMillis: timeouts.connectMs,
          ...(timeouts.silenceMs !== undefined && { query_timeout: timeouts.silenceMs }),
          // Parameters of the connection, which PgBouncer refuses.
          ...(isPooledByTransaction(config.connectionString)
            ? {}
            : {
                statement_timeout: timeouts.statementMs,
                lock_timeout: timeouts.lockMs,
                idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
              }),
        }),
    types: { getTypeParser },
  });
  pool.on('error', onError);
  // Errors of clients in use. Without a listener, they would end the process.
  pool.on('connect', (client) => client.on('error', onError));
  return pool;
}

type DialectOptions = Partial<Pick<ConnectionTools, 'onFailure' | 'silenceMs'> & Pick<HungOptions, 'ask'>>;

/**
 * Kysely over `pg`. It differs from Kysely's own PostgreSQL dialect in four ways:
 *
 * - Statements are named, so PostgreSQL parses and plans each SQL text once per connection. Statements of the entity
 *    manager are not named: their texts vary with the length of lists, and a named `select *` fails after a column was
 *    added.
 * - A transaction begins, and takes its connection, with its first statement that is more than a plain read. Under READ
 *    COMMITTED, every statement sees the latest commits anyway. An operation that has only read therefore holds nothing
 *    while it waits for something else.
 * - `begin`, `commit` and statements whose results are not needed are sent together with others, in one round trip.
 * - A lost connection is destroyed and never returns to the pool. A silent connection keeps its place in the pool until
 *    PostgreSQL has finished its work.
 */
export function postgresDialect(
  pool: Pool,
  session: Session = wholeSession,
  { onFailure, silenceMs, ask }: DialectOptions = {},
): OwnDialect & { hung(): number; close(): Promise<void> } {
  const hung = keepHung({ pool, ask, isPooledByTransaction: !session.areStatementsNamed });
  const tools = {
    hung,
    nameOf: session.areStatementsNamed ? rememberNames() : () => undefined,
    onFailure,
    settings: session.settings,
    silenceMs,
  };
  const open = (): UnitConnection => createUnitConnection(pool, tools);
  const destroy = async (): Promise<void> => {
    hung.close();
    if (!pool.ended) await pool.end();
  };
  return {
    open,
    execute: (query, options) => open().executeQuery(query, options),
    hung: hung.count,
    close: destroy,
    createDriver: () => driverOf({ open }, destroy),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (kysely) => new PostgresIntrospector(kysely),
  };
}
