import type { Database, Statement } from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
} from 'kysely';
import { addExactSum } from './exact-sum.ts';
import { heldQuestion } from './held-connection.ts';
import { LocklessQueryCompiler } from './sqlite-query-compiler.ts';
import { makeTurnstile, type Turnstile } from './turnstile.ts';
import { markUnavailable } from './unavailable.ts';

/** The maximum of prepared statements. Lists of different lengths make new texts. */
const MAX_PREPARED = 500;

interface SqliteConnection extends DatabaseConnection {
  begin(): void;
  end(command: 'commit' | 'rollback'): void;
}

/** A better-sqlite3 handle that can be replaced, the statements prepared with it, and who uses it. */
export interface SqliteSlot {
  handle: Database;
  readonly statements: Map<string, Statement<unknown[], unknown>>;
  readonly turnstile: Turnstile;
  /** Called for every statement that fails. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

/** A slot for a handle, which gets the functions that queries call. */
export function slotOf(handle: Database, onFailure?: SqliteSlot['onFailure']): SqliteSlot {
  addExactSum(handle);
  return { handle, statements: new Map(), turnstile: makeTurnstile(), onFailure };
}

/** Puts another handle into the slot and returns the one before. Call it in the turnstile. */
export function replaceHandle(slot: SqliteSlot, handle: Database): Database {
  const { handle: before } = slot;
  addExactSum(handle);
  slot.handle = handle;
  slot.statements.clear();
  return before;
}

/**
 * Kysely over one better-sqlite3 handle. It differs from Kysely's own SQLite dialect in three ways: prepared
 * statements are kept, row locks are omitted, and a transaction begins with its first statement, so an operation
 * blocks no others before it uses the database (deriving a key takes milliseconds).
 *
 * INVARIANT: the handle is a single connection, so while a transaction is open all other callers wait.
 */
export function sqliteDialect(slot: SqliteSlot): Dialect {
  return {
    createDriver: () => createDriver(slot),
    createQueryCompiler: () => new LocklessQueryCompiler(),
    createAdapter,
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
  };
}

/** Connections are handed out freely; the turnstile, not Kysely's mutex, separates transactions. */
function createAdapter(): DialectAdapter {
  const adapter = new SqliteAdapter();
  Object.defineProperty(adapter, 'supportsMultipleConnections', { value: true });
  return adapter;
}

function createDriver(slot: SqliteSlot): Driver {
  const own = (connection: DatabaseConnection) => connection as SqliteConnection;
  const command = (connection: DatabaseConnection, sql: string) =>
    connection.executeQuery(CompiledQuery.raw(sql)).then(() => undefined);
  return {
    init: async () => {},
    acquireConnection: async () => createConnection(slot),
    beginTransaction: async (connection) => own(connection).begin(),
    commitTransaction: async (connection) => own(connection).end('commit'),
    rollbackTransaction: async (connection) => own(connection).end('rollback'),
    savepoint: (connection, name) => command(connection, `savepoint "${name}"`),
    rollbackToSavepoint: (connection, name) => command(connection, `rollback to "${name}"`),
    releaseSavepoint: (connection, name) => command(connection, `release "${name}"`),
    releaseConnection: async () => {},
    destroy: async () => {
      slot.handle.close();
    },
  };
}

function createConnection(slot: SqliteSlot): SqliteConnection {
  const { turnstile } = slot;
  let transaction: 'none' | 'announced' | 'open' = 'none';

  async function executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (query.sql === heldQuestion.sql) return { rows: [{ isHeld: transaction === 'open' } as Row] };
    if (transaction === 'open') return run<Row>(slot, query);
    const entered = turnstile.enter();
    if (entered !== undefined) await entered;
    if (transaction === 'announced') {
      try {
        slot.handle.exec('begin immediate');
      } catch (error) {
        turnstile.leave();
        throw failed(slot, error);
      }
      transaction = 'open';
      return run<Row>(slot, query);
    }
    try {
      return run<Row>(slot, query);
    } finally {
      turnstile.leave();
    }
  }

  function end(command: 'commit' | 'rollback'): void {
    const wasOpen = transaction === 'open';
    transaction = 'none';
    if (!wasOpen) return;
    try {
      slot.handle.exec(command);
    } catch (error) {
      throw failed(slot, error);
    } finally {
      // NOTE: a failed commit (disk full) leaves the transaction open, so it is rolled back here.
      if (slot.handle.inTransaction) slot.handle.exec('rollback');
      turnstile.leave();
    }
  }

  return {
    executeQuery,
    async *streamQuery() {
      yield* [];
      throw new Error('rows are read whole: streaming is not supported on SQLite');
    },
    begin: () => {
      transaction = 'announced';
    },
    end,
  };
}

function run<Row>(slot: SqliteSlot, { sql, parameters }: CompiledQuery): QueryResult<Row> {
  const statement = prepare(slot, sql);
  try {
    if (statement.reader) return { rows: statement.all(parameters) as Row[] };
    const { changes, lastInsertRowid } = statement.run(parameters);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  } catch (error) {
    throw failed(slot, error);
  }
}

function failed({ onFailure }: SqliteSlot, error: unknown): unknown {
  const marked = markUnavailable(error);
  onFailure?.(marked);
  return marked;
}

function prepare({ handle, statements }: SqliteSlot, sql: string): Statement<unknown[], unknown> {
  const known = statements.get(sql);
  if (known !== undefined) return known;
  const statement = handle.prepare<unknown[], unknown>(sql);
  if (statements.size >= MAX_PREPARED) statements.delete(statements.keys().next().value as string);
  statements.set(sql, statement);
  return statement;
}
