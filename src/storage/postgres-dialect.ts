import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';
import { Pool, type PoolClient, type PoolConfig, types } from 'pg';
import { heldQuestion } from './held-connection.ts';
import { isLast, statementAfterLast } from './last-statement.ts';
import { isBrokenAtOnce, isConnectionLost, markUnavailable } from './unavailable.ts';

/** The maximum of named statements per process. Lists of different lengths make new texts. */
const MAX_NAMED = 500;

/** `bigint`; our times and sequences stay far below 2^53. */
const INT8_OID = 20;

/** Limits of each step of a database access, ms. */
export interface PostgresTimeouts {
  /** For a connection of the pool, existing or new. */
  readonly connectMs: number;
  /** For one statement, measured by the server. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** For a transaction that waits for its next statement. */
  readonly idleInTransactionMs: number;
  /** For one response, measured by the client. A connection that is silent for longer is destroyed. */
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
 * Whether the URL leads to PgBouncer in transaction mode, `?pgbouncer=true`: sessions then last for a transaction only,
 * so statements must not be named and settings must be made in each transaction.
 */
export function isPooledByTransaction(url: string | undefined): boolean {
  return url !== undefined && URL.canParse(url) && new URL(url).searchParams.get('pgbouncer') === 'true';
}

/** What of a session outlasts a transaction. */
export interface Session {
  readonly areStatementsNamed: boolean;
  /** SQL that makes the settings of each transaction, beginning with `;`, or empty. */
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

/** Creates the pool for `postgresDialect`. Without `timeouts` its statements may run for any time. */
export function postgresPool(
  config: PoolConfig,
  onError: (error: Error) => void,
  timeouts: PostgresTimeouts | undefined,
): Pool {
  const pool = new Pool({
    ...config,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    ...(timeouts === undefined
      ? {}
      : {
          connectionTimeoutMillis: timeouts.connectMs,
          query_timeout: timeouts.silenceMs,
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
  // Errors of clients that are in use. Without a listener they would end the process.
  pool.on('connect', (client) => client.on('error', onError));
  return pool;
}

const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === INT8_OID && format !== 'binary' ? Number : types.getTypeParser(oid, format as 'text');

/**
 * Kysely over `pg`. It differs from Kysely's own PostgreSQL dialect in three ways:
 * - statements are named, so PostgreSQL parses and plans each SQL text once per connection. Those of the entity
 *   manager are not named: their texts vary with the length of lists, and a named `select *` fails after a column is
 *   added;
 * - a transaction begins, and takes its connection from the pool, with the first statement that is more than a plain
 *   read. Under READ COMMITTED every statement sees the latest commits anyway, so reads before the first change or lock
 *   need no transaction, and an operation that has only read holds nothing while it waits for something else;
 * - a lost connection is destroyed and never returns to the pool, whatever statement it was lost at.
 */
export function postgresDialect(pool: Pool, session: Session = wholeSession, onFailure?: OnFailure): Dialect {
  return {
    createDriver: () => createDriver(pool, session, onFailure),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (kysely) => new PostgresIntrospector(kysely),
  };
}

interface LazyConnection extends DatabaseConnection {
  begin(settings: TransactionSettings): void;
  end(command: 'commit' | 'rollback'): Promise<void>;
  release(): void;
}

function createDriver(pool: Pool, session: Session, onFailure: OnFailure | undefined): Driver {
  const nameOf = session.areStatementsNamed ? rememberNames() : () => undefined;
  const tools = { nameOf, onFailure, settings: session.settings };
  const own = (connection: DatabaseConnection) => connection as LazyConnection;
  const command = (connection: DatabaseConnection, sql: string) =>
    connection.executeQuery(CompiledQuery.raw(sql)).then(() => undefined);
  return {
    init: async () => {},
    acquireConnection: async () => createConnection(pool, tools),
    beginTransaction: async (connection, settings) => own(connection).begin(settings),
    commitTransaction: (connection) => own(connection).end('commit'),
    rollbackTransaction: (connection) => own(connection).end('rollback'),
    savepoint: (connection, name) => command(connection, `savepoint "${name}"`),
    rollbackToSavepoint: (connection, name) => command(connection, `rollback to savepoint "${name}"`),
    releaseSavepoint: (connection, name) => command(connection, `release savepoint "${name}"`),
    releaseConnection: async (connection) => own(connection).release(),
    destroy: async () => void (pool.ended || (await pool.end())),
  };
}

/** Whether a statement reads and does nothing else: no lock, no function of PostgreSQL that a transaction ends. */
function isPlainRead(sql: string): boolean {
  return sql.startsWith('select ') && !moreThanRead.test(sql);
}

// Values are parameters, so these words come from the code. One that is only part of a name begins a transaction
// needlessly.
const moreThanRead = /\bfor (no key )?(update|share|key share)\b|\bpg_|\b(nextval|setval|set_config)\b/;

/** Called for every statement that fails. */
export type OnFailure = (error: unknown) => void;

type NameOf = (sql: string) => string | undefined;

interface Tools {
  readonly nameOf: NameOf;
  readonly onFailure: OnFailure | undefined;
  /** Statements that follow the one that begins a transaction. */
  readonly settings: string;
}

function createConnection(pool: Pool, { nameOf, onFailure, settings }: Tools): LazyConnection {
  let client: PoolClient | undefined;
  let connecting: Promise<PoolClient> | undefined;
  // `announced`: begun for Kysely; PostgreSQL follows with the first statement that is more than a plain read.
  let transaction: 'none' | 'announced' | 'open' | 'ended' = 'none';
  let beginning = `begin${settings}`;
  // An isolation level or access mode is for reads too.
  let hasModes = false;
  // Statements of one transaction may be sent concurrently. The first one begins it for all.
  let opening: Promise<void> | undefined;
  // Outside the transaction. They share a connection: a unit of work never holds two.
  let statements = 0;

  const release = (error?: Error): void => {
    const held = client;
    client = undefined;
    held?.release(error);
  };

  function connect(): Promise<PoolClient> {
    connecting ??= pool.connect().finally(() => {
      connecting = undefined;
    });
    return connecting;
  }

  async function ask({ sql, parameters, query }: CompiledQuery) {
    if (client === undefined && transaction === 'open')
      throw markUnavailable(new Error('the connection was lost'));
    try {
      client ??= await connect();
      // NOTE: the server refuses several commands in one prepared statement. Only migrations send such texts.
      const values = parameters as unknown[];
      const name = values.length === 0 || query.kind === 'RawNode' ? undefined : nameOf(sql);
      return await (name === undefined
        ? client.query(sql, values)
        : client.query({ name, text: sql, values }));
    } catch (error) {
      if (isConnectionLost(error)) release(error as Error);
      const marked = markUnavailable(error);
      onFailure?.(marked);
      throw marked;
    }
  }

  /**
   * Retries on another connection if the first one is broken, as all idle ones are after a restart of the server.
   * Only for statements that change nothing.
   */
  async function askTwice(query: CompiledQuery) {
    try {
      return await ask(query);
    } catch (error) {
      if (!isBrokenAtOnce(error) || client !== undefined) throw error;
      return ask(query);
    }
  }

  async function open(): Promise<void> {
    try {
      await askTwice(CompiledQuery.raw(beginning));
      transaction = 'open';
    } catch (error) {
      release(error as Error);
      throw error;
    } finally {
      opening = undefined;
    }
  }

  function isHeld(): boolean {
    return transaction === 'open' || opening !== undefined;
  }

  /** Settings are those of a transaction. */
  function needsNoTransaction(): boolean {
    return (
      transaction === 'announced' && !hasModes && settings === '' && opening === undefined && statements === 0
    );
  }

  async function executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (query.sql === heldQuestion.sql) {
      return { rows: [{ isHeld: isHeld() } as Row] };
    }
    if (transaction === 'ended') throw statementAfterLast();
    if (transaction === 'open') return resultOf<Row>(await ask(query));
    if (isLast(query) && needsNoTransaction()) {
      transaction = 'ended';
      try {
        return resultOf<Row>(await ask(query));
      } finally {
        release();
      }
    }
    const isRead = isPlainRead(query.sql);
    if (transaction === 'announced' && (!isRead || hasModes || opening !== undefined)) {
      opening ??= open();
      await opening;
      return resultOf<Row>(await ask(query));
    }
    statements += 1;
    try {
      return resultOf<Row>(await (isRead ? askTwice : ask)(query));
    } finally {
      statements -= 1;
      if (statements === 0 && !isHeld()) release();
    }
  }

  async function end(command: 'commit' | 'rollback'): Promise<void> {
    const wasOpen = transaction === 'open';
    try {
      // The server has already rolled back the transaction of a lost connection.
      if (wasOpen && (command === 'commit' || client !== undefined)) await ask(CompiledQuery.raw(command));
    } catch (error) {
      release(error as Error);
      throw error;
    } finally {
      transaction = 'none';
      release();
    }
  }

  return {
    executeQuery,
    async *streamQuery() {
      yield* [];
      throw new Error('rows are read whole: streaming is not supported');
    },
    begin({ isolationLevel, accessMode }) {
      const modes = [isolationLevel && `isolation level ${isolationLevel}`, accessMode].filter(Boolean);
      hasModes = modes.length > 0;
      beginning = `${modes.length === 0 ? 'begin' : `start transaction ${modes.join(' ')}`}${settings}`;
      transaction = 'announced';
    },
    end,
    release: () => release(),
  };
}

const counting = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

function resultOf<Row>(result: {
  command: string;
  rowCount: number | null;
  rows: unknown[];
}): QueryResult<Row> {
  const rows = result.rows as Row[];
  return counting.has(result.command) ? { rows, numAffectedRows: BigInt(result.rowCount ?? 0) } : { rows };
}

function rememberNames(): NameOf {
  const names = new Map<string, string>();
  return (sql) => {
    const known = names.get(sql);
    if (known !== undefined || names.size >= MAX_NAMED) return known;
    const name = `custos_${names.size}`;
    names.set(sql, name);
    return name;
  };
}
