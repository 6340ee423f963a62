import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import { driverOf, type OwnDialect, type UnitConnection } from './own-kysely.ts';
import { getTypeParser } from './postgres/pipelining.ts';
import { type ConnectionTools, createUnitConnection, rememberNames } from './postgres/unit-connection.ts';

/** A PostgreSQL backend that is running a statement for this process. */
interface ActiveBackend {
  readonly pid: number;
  /** Whether the backend's commit has waited for a synchronous standby for longer than a healthy standby takes. */
  readonly waits: boolean;
}

interface HungOptions {
  readonly pool: Pool;
  /**
   * Queries PostgreSQL over another connection, with its own time limit. Default: none, so that a silent connection is
   * destroyed immediately.
   */
  readonly ask: (<Row>(sql: string) => Promise<readonly Row[]>) | undefined;
  /** Whether the backend ids that our connections know are not those of their backends, as behind PgBouncer. */
  readonly isPooledByTransaction: boolean;
}

/** The connections of a pool that were abandoned because they were silent, while their backends still work. */
export interface HungConnections {
  /** Abandons a connection that was silent for too long. It leaves the pool when its backend has finished. */
  giveUp(client: PoolClient, error: Error): void;
  /** Returns a connection for a change. Rejects if only the connections that are reserved for reads are left. */
  connect(): Promise<PoolClient>;
  count(): number;
  /** Destroys all abandoned connections. */
  close(): void;
}

/**
 * CHOICE: while connections hang, changes leave two connections for reads, as many as the admission of requests
 * reserves. A change would most likely hang as well.
 */
const SPARED_CONNECTIONS = 2;
const EVERY_MS = 1_000;

const activeBackends = `
select pid, wait_event = 'SyncRep' and state_change < clock_timestamp() - interval '200 milliseconds' as waits
from pg_stat_activity
where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`;

/**
 * Keeps the place of a silent connection in the pool for as long as PostgreSQL works for it. A commit that waits for a
 * synchronous standby does not notice that its client has disconnected. If each retry opened another connection,
 * retries would use up `max_connections`, and nobody could connect.
 *
 * INVARIANT: nothing here cancels a statement or ends a backend. Either would commit data that the standby has not
 * received.
 */
function keepHung({ pool, ask, isPooledByTransaction }: HungOptions): HungConnections {
  const kept = new Map<PoolClient, { isJudged: boolean; free(): void }>();
  let checking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function check(): Promise<void> {
    const judged = [...kept];
    const active = await ask!<ActiveBackend>(activeBackends).catch(() => undefined);
    for (const [client, connection] of judged) {
      connection.isJudged = true;
      // If PostgreSQL does not respond, for example because it has no free connection, no backend counts as finished.
      if (active !== undefined && !isAtWork(client, active)) connection.free();
    }
  }
  function isAtWork(client: PoolClient, active: readonly ActiveBackend[]): boolean {
    if (isPooledByTransaction) return active.some(({ waits }) => waits);
    return active.some(({ pid }) => pid === (client as { processID?: number | null }).processID);
  }
  const checkOnce = (): Promise<void> => {
    clearTimeout(timer);
    checking ??= check().finally(() => {
      checking = undefined;
      if (kept.size === 0) return;
      timer = setTimeout(() => void checkOnce(), hasUnjudged() ? 0 : EVERY_MS).unref();
    });
    return checking;
  };
  const hasUnjudged = (): boolean => [...kept.values()].some(({ isJudged }) => !isJudged);
  const isShort = (): boolean =>
    kept.size > 0 && pool.totalCount - pool.idleCount >= (pool.options.max ?? 1) - SPARED_CONNECTIONS;

  return {
    giveUp(client, error) {
      if (ask === undefined || isClosed) return client.release(error);
      const free = (): void => {
        if (!kept.delete(client)) return;
        client.off('drain', free).off('end', free);
        client.release(error);
      };
      kept.set(client, { isJudged: false, free });
      // The response has arrived late, or the connection has ended.
      client.once('drain', free).once('end', free);
      void checkOnce();
    },
    async connect() {
      // The running query may have started before the last connection was abandoned, so query once more.
      for (let round = 0; round < 2 && isShort() && hasUnjudged(); round += 1) await checkOnce();
      if (isShort()) throw noConnectionError(kept.size);
      return pool.connect();
    },
    count: () => kept.size,
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const { free } of [...kept.values()]) free();
    },
  };
}

/** Creates the error for a change without a connection. Its code is PostgreSQL's for "too many connections". */
function noConnectionError(hung: number): Error {
  const message = `no connection is left for changes: ${hung} wait for PostgreSQL, maybe for its synchronous standby`;
  return Object.assign(new Error(message), { code: '53300', severity: 'ERROR' });
}

/** The time limits of each step of a database access, ms. */
export interface PostgresTimeouts {
  /** For acquiring a connection from the pool, or opening one. */
  readonly connectMs: number;
  /** For one statement, measured by the server. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** For the pause between two statements of a transaction. */
  readonly idleInTransactionMs: number;
  /** For the complete response to one message, measured by the client. After that, the connection is abandoned. */
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
 * CHOICE: while no connection gets a response, requests are refused after this time, unless they have already sent a
 * commit. A request whose commit hangs waits for `silenceMs` instead: if it were refused earlier, the commit might
 * still succeed after the client was told that it had failed.
 */
export const QUIET_MS = 3_000;

/**
 * CHOICE: the time limits of work that is useless after a second, such as the settlement of rate limits, which begins
 * again by then.
 */
export const shortTimeouts: PostgresTimeouts = {
  connectMs: 1_000,
  statementMs: 1_000,
  lockMs: 1_000,
  idleInTransactionMs: 5_000,
  silenceMs: 2_000,
};

/** Returns whether the URL leads to PgBouncer in transaction mode: `?pgbouncer=true`. */
export function isPooledByTransaction(url: string | undefined): boolean {
  return url !== undefined && URL.canParse(url) && new URL(url).searchParams.get('pgbouncer') === 'true';
}

/**
 * What may be kept in a connection between transactions. Behind PgBouncer in transaction mode nothing may, so
 * statements have no names and each transaction repeats its settings.
 */
export interface SessionMode {
  readonly areStatementsNamed: boolean;
  /** SQL for the settings of each transaction, starting with `;`, or empty. */
  readonly settings: string;
}

const wholeSession: SessionMode = { areStatementsNamed: true, settings: '' };

export function sessionModeOf(url: string, timeouts: PostgresTimeouts | undefined): SessionMode {
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
 * Creates a pool.
 *
 * @param timeouts undefined: statements have no time limit. Without `silenceMs`, a client waits indefinitely for a
 * response.
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
          // The limits below are sent as parameters of the connection, which PgBouncer refuses.
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
  // Receives errors of clients in use. Without a listener, they would end the process.
  pool.on('connect', (client) => client.on('error', onError));
  return pool;
}

type DialectOptions = Partial<
  Pick<ConnectionTools, 'onFailure' | 'silenceMs' | 'responses' | 'quietMs'> & Pick<HungOptions, 'ask'>
>;

/**
 * Returns the Kysely dialect for `pg`. It differs from Kysely's own PostgreSQL dialect in four ways:
 *
 * - Statements are named, so PostgreSQL parses and plans each SQL text once per connection. Statements of the entity
 *   manager are not named: their texts vary with the length of lists, and a named `select *` fails after a column was
 *   added.
 * - A transaction begins, and acquires its connection, with its first statement that is more than a plain read. Under
 *   READ COMMITTED, every statement sees the latest commits anyway. So a unit of work that has only read holds no
 *   connection while it waits for something else.
 * - `begin`, `commit` and statements whose results are not needed are sent together with other statements, in one round
 *   trip.
 * - A lost connection is destroyed and never returns to the pool. A silent connection keeps its place in the pool until
 *   PostgreSQL has finished its work.
 */
export function postgresDialect(
  pool: Pool,
  session: SessionMode = wholeSession,
  { onFailure, silenceMs, responses, quietMs, ask }: DialectOptions = {},
): OwnDialect & { hung(): number; close(): Promise<void> } {
  const hung = keepHung({ pool, ask, isPooledByTransaction: !session.areStatementsNamed });
  const tools = {
    hung,
    nameOf: session.areStatementsNamed ? rememberNames() : () => undefined,
    onFailure,
    settings: session.settings,
    ...{ silenceMs, responses, quietMs },
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
