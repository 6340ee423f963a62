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
import { addExactSum } from '../exact-sum.ts';
import { heldQuestion } from '../held-connection.ts';
import { isLast, statementAfterLast } from '../last-statement.ts';
import { markUnavailable } from '../unavailable.ts';
import type { CommitSync } from './commit-sync.ts';
import { LocklessQueryCompiler } from './sqlite-query-compiler.ts';
import { makeTurnstile, type Turnstile } from './turnstile.ts';

/** The maximum of prepared statements. Lists of different lengths make new texts. */
const MAX_PREPARED = 500;

interface SqliteConnection extends DatabaseConnection {
  begin(): void;
  /** Resolves when the end is on the disk. */
  end(command: 'commit' | 'rollback'): Promise<void>;
}

/** A better-sqlite3 handle that can be replaced, the statements prepared with it, and who uses it. */
export interface SqliteSlot {
  handle: Database;
  readonly statements: Map<string, Statement<unknown[], unknown>>;
  readonly turnstile: Turnstile;
  /** Undefined for a database in memory. */
  readonly sync?: CommitSync | undefined;
  /** Called for every statement that fails. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

/** A slot for a handle, which gets the functions that queries call. */
export function slotOf(
  handle: Database,
  { sync, onFailure }: Pick<SqliteSlot, 'sync' | 'onFailure'> = {},
): SqliteSlot {
  addExactSum(handle);
  return { handle, statements: new Map(), turnstile: makeTurnstile(), sync, onFailure };
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
 * Kysely over one better-sqlite3 handle. It differs from Kysely's own SQLite dialect in four ways: prepared
 * statements are kept, row locks are omitted, a transaction begins with its first statement, so an operation
 * blocks no others before it uses the database (deriving a key takes milliseconds), and it lets others in before its
 * commit is on the disk.
 *
 * INVARIANT: the handle is a single connection, so while a transaction is open all other callers wait.
 *
 * INVARIANT: a change is on the disk before its caller goes on, and before anyone who has read it outside a transaction
 * does. A transaction may read it earlier; what it writes comes later in the log, and never survives without it.
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
  const { turnstile, sync } = slot;
  let transaction: 'none' | 'announced' | 'open' | 'ended' = 'none';
  let hasWritten = false;

  async function executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (query.sql === heldQuestion.sql) return { rows: [{ isHeld: transaction === 'open' } as Row] };
    if (transaction === 'ended') throw statementAfterLast();
    if (transaction === 'open') return runInside<Row>(query);
    if (transaction === 'announced' && isLast(query)) transaction = 'ended';
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
      hasWritten = false;
      return runInside<Row>(query);
    }
    let ran: Ran<Row>;
    try {
      ran = run<Row>(slot, query);
    } finally {
      turnstile.leave();
    }
    const synced = ran.isWrite ? reachDisk(slot) : sync?.settled();
    if (synced !== undefined) await synced;
    return ran.result;
  }

  function runInside<Row>(query: CompiledQuery): QueryResult<Row> {
    const { result, isWrite } = run<Row>(slot, query);
    hasWritten ||= isWrite;
    return result;
  }

  async function end(command: 'commit' | 'rollback'): Promise<void> {
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
    if (command === 'commit' && hasWritten) await reachDisk(slot);
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

async function reachDisk(slot: SqliteSlot): Promise<void> {
  try {
    await slot.sync?.reach();
  } catch (error) {
    throw failed(slot, error);
  }
}

/** A statement that was run. */
interface Ran<Row> {
  readonly result: QueryResult<Row>;
  readonly isWrite: boolean;
}

function run<Row>(slot: SqliteSlot, { sql, parameters }: CompiledQuery): Ran<Row> {
  const statement = prepare(slot, sql);
  const isWrite = !statement.readonly;
  try {
    if (statement.reader) return { result: { rows: statement.all(parameters) as Row[] }, isWrite };
    const { changes, lastInsertRowid } = statement.run(parameters);
    const result = { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    return { result, isWrite };
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
