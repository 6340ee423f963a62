import { resolve } from 'node:path';
import type { Database, Statement } from 'better-sqlite3';
import {
  type CompiledQuery,
  type DialectAdapter,
  type QueryResult,
  type SelectModifierNode,
  type SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { markUnavailable } from '../database-errors.ts';
import { createMutex, type Mutex } from '../mutex.ts';
import {
  driverOf,
  type OwnDialect,
  type StatementOptions,
  statementAfterLast,
  type UnitConnection,
} from '../own-kysely.ts';
import { addExactSum } from '../sql-functions.ts';
import type { CommitSync } from './commit-sync.ts';
import { createGroupCommit, type GroupCommit } from './group-commit.ts';
import { shareReads } from './shared-reads.ts';

const rowLocks: ReadonlySet<SelectModifierNode['modifier']> = new Set([
  'ForUpdate',
  'ForNoKeyUpdate',
  'ForShare',
  'ForKeyShare',
  'NoWait',
  'SkipLocked',
]);

/**
 * Compiles queries for SQLite without row locks (`for update`, `skip locked` and the like). SQLite neither parses nor
 * needs them; see `locks.ts`. MikroORM also leaves out the `lockMode` of its own queries.
 *
 * NOTE: a class, because Kysely's compilers can only be extended by inheritance.
 */
class LocklessQueryCompiler extends SqliteQueryCompiler {
  protected override visitSelectQuery(node: SelectQueryNode): void {
    super.visitSelectQuery(withoutRowLocks(node));
  }
}

function withoutRowLocks(node: SelectQueryNode): SelectQueryNode {
  if (node.endModifiers === undefined) return node;
  const endModifiers = node.endModifiers.filter(({ modifier }) => !rowLocks.has(modifier));
  return { ...node, endModifiers };
}

/**
 * The maximum number of prepared statements. It is needed because lists of different lengths make different SQL texts.
 */
const MAX_PREPARED = 500;

interface PreparedStatement {
  readonly statement: Statement<unknown[], unknown>;
  /** Whether it returns rows. */
  readonly isReader: boolean;
  readonly isWrite: boolean;
  /** Whether it only reads rows, unlike commands such as `savepoint` or `pragma`. */
  readonly isPlainRead: boolean;
}

/** A better-sqlite3 handle that can be replaced, and what belongs to it. */
export interface SqliteSlot {
  handle: Database;
  readonly statements: Map<string, PreparedStatement>;
  readonly mutex: Mutex;
  readonly commits: GroupCommit;
  /** Syncs the write-ahead log after commits. Undefined for a database in memory. */
  readonly sync?: CommitSync | undefined;
  /** Called for every statement that fails. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

/** Creates a slot for a handle, and defines our SQL functions on the handle. */
export function slotOf(
  handle: Database,
  { sync, onFailure }: Pick<SqliteSlot, 'sync' | 'onFailure'> = {},
): SqliteSlot {
  addExactSum(handle);
  const inSlot = {
    run: (command: string) => runCommand(slot, command),
    isInTransaction: () => slot.handle.inTransaction,
  };
  const commits = createGroupCommit({
    ...inSlot,
    file: handle.memory ? undefined : resolve(handle.name),
    flushed: () => flushed(slot),
    diskFree: () => slot.sync?.free(),
    reads: handle.memory ? undefined : shareReads(inSlot),
  });
  const slot = { handle, statements: new Map(), mutex: createMutex(), commits, sync, onFailure };
  return slot;
}

/** Replaces the handle and returns the old one. The caller must hold the mutex. */
export function replaceHandle(slot: SqliteSlot, handle: Database): Database {
  const { handle: before } = slot;
  addExactSum(handle);
  slot.handle = handle;
  slot.statements.clear();
  return before;
}

/**
 * Returns the Kysely dialect for one better-sqlite3 handle. It differs from Kysely's own SQLite dialect in six ways:
 *
 * - Prepared statements are kept.
 * - Row locks are omitted.
 * - A transaction begins with its first statement, so a unit of work blocks no others before it uses the database.
 *   Deriving a key, for example, takes milliseconds.
 * - The next transaction may begin before a commit is on disk.
 * - SQLite commits several transactions together.
 * - Reads of the same turn of the event loop share a transaction.
 *
 * INVARIANT: the handle is a single connection, so all other callers wait while a transaction is open.
 *
 * INVARIANT: a change is on disk before its caller continues, and before any reader outside a transaction continues. A
 * transaction may read the change earlier; its own writes come later in the log, so they never survive without it.
 */
export function sqliteDialect(slot: SqliteSlot): OwnDialect {
  const open = (): UnitConnection => createConnection(slot);
  const destroy = async (): Promise<void> => {
    slot.commits.flush();
    slot.handle.close();
  };
  return {
    open,
    // One connection is enough for all statements outside transactions, because it has no state between statements.
    execute: open().executeQuery,
    createDriver: () => driverOf({ open }, destroy),
    createQueryCompiler: () => new LocklessQueryCompiler(),
    createAdapter,
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
  };
}

/** Returns an adapter that lets Kysely use connections at any time. Our mutex separates the transactions. */
function createAdapter(): DialectAdapter {
  const adapter = new SqliteAdapter();
  Object.defineProperty(adapter, 'supportsMultipleConnections', { value: true });
  return adapter;
}

function createConnection(slot: SqliteSlot): UnitConnection {
  const { mutex, commits, sync } = slot;
  let transaction: 'none' | 'announced' | 'open' | 'ended' = 'none';
  let hasWritten = false;
  let isObserved = false;
  let isApart = false;
  // The first of several concurrent statements begins the transaction for all of them.
  let opening: Promise<void> | undefined;

  function begin(): void {
    try {
      if (isApart) commits.flush();
      commits.begin();
    } catch (error) {
      mutex.release();
      throw error;
    }
    transaction = 'open';
    hasWritten = false;
  }

  async function beginWhenAdmitted(entered: Promise<void>): Promise<void> {
    try {
      await entered;
      begin();
    } finally {
      opening = undefined;
    }
  }

  /**
   * Runs a statement.
   * INVARIANT: before the statement, it awaits only the mutex. After any other await, a concurrent statement of the
   * same unit of work could begin the transaction again.
   */
  async function executeQuery<Row>(
    query: CompiledQuery,
    { isLast = false, commits: isEnd = false }: StatementOptions = {},
  ): Promise<QueryResult<Row>> {
    while (opening !== undefined) await opening;
    if (transaction === 'ended') throw statementAfterLast();
    if (transaction === 'open') return isEnd && !isObserved ? await runLast(query) : runInside(query);
    const entered = mutex.acquire();
    if (transaction === 'none') {
      if (entered !== undefined) await entered;
      return await runAlone(query);
    }
    if (entered === undefined) {
      begin();
    } else {
      opening = beginWhenAdmitted(entered);
      await opening;
    }
    return isLast || isEnd ? await runLast(query) : runInside(query);
  }

  async function runAlone<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    let ran: Ran<Row>;
    try {
      const statement = prepare(slot, query.sql);
      if (statement.isPlainRead) commits.read();
      else commits.single();
      ran = runStatement(slot, statement, query);
    } finally {
      mutex.release();
    }
    await (ran.isWrite ? flushed(slot) : sync?.settled());
    return ran.result;
  }

  function runInside<Row>(query: CompiledQuery): QueryResult<Row> {
    commits.requireOpen();
    const statement = prepare(slot, query.sql);
    if (!statement.isPlainRead) commits.protect();
    return ranInside(runStatement<Row>(slot, statement, query));
  }

  /**
   * Runs a statement with `commits`. It needs no savepoint: a failed statement has no effect, and a successful one is
   * committed when this returns.
   */
  async function runLast<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    commits.requireOpen();
    const result = ranInside(runStatement<Row>(slot, prepare(slot, query.sql), query));
    await end('commit', 'ended');
    return result;
  }

  function ranInside<Row>({ result, isWrite }: Ran<Row>): QueryResult<Row> {
    hasWritten ||= isWrite;
    return result;
  }

  async function end(command: 'commit' | 'rollback', then: 'none' | 'ended' = 'none'): Promise<void> {
    while (opening !== undefined) await opening.catch(() => undefined);
    const wasOpen = transaction === 'open';
    transaction = then;
    if (!wasOpen) return;
    let ended: Promise<void> | undefined;
    try {
      ended = command === 'commit' ? commits.commit(hasWritten) : commits.rollback();
    } finally {
      // Release the mutex before the commit is on disk, so that later transactions can join the sync.
      mutex.release();
    }
    await ended;
  }

  return {
    executeQuery,
    async *streamQuery() {
      yield* [];
      throw new Error('rows are read whole: streaming is not supported on SQLite');
    },
    begin: (_settings, isCommitObserved = false) => {
      transaction = 'announced';
      isObserved = isCommitObserved;
      isApart = false;
    },
    standApart: () => {
      isApart = true;
    },
    isHeld: () => transaction === 'open',
    end: (command) => end(command),
    release: () => {},
  };
}

async function flushed(slot: SqliteSlot): Promise<void> {
  try {
    await slot.sync?.flushed();
  } catch (error) {
    throw failed(slot, error);
  }
}

/** A statement that has run, and whether it has written. */
interface Ran<Row> {
  readonly result: QueryResult<Row>;
  readonly isWrite: boolean;
}

function runStatement<Row>(
  slot: SqliteSlot,
  { statement, isReader, isWrite }: PreparedStatement,
  { parameters }: CompiledQuery,
): Ran<Row> {
  try {
    if (isReader) return { result: { rows: statement.all(parameters) as Row[] }, isWrite };
    const { changes, lastInsertRowid } = statement.run(parameters);
    const result = { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    return { result, isWrite };
  } catch (error) {
    const marked = failed(slot, error);
    if (!slot.handle.inTransaction) slot.commits.lose(marked);
    throw marked;
  }
}

/** Runs a command, such as `begin`, as a prepared statement, which takes half the time of `exec`. */
function runCommand(slot: SqliteSlot, command: string): void {
  const { statement } = prepare(slot, command);
  try {
    statement.run();
  } catch (error) {
    throw failed(slot, error);
  }
}

function failed({ onFailure }: SqliteSlot, error: unknown): unknown {
  const marked = markUnavailable(error);
  onFailure?.(marked);
  return marked;
}

function prepare(slot: SqliteSlot, sql: string): PreparedStatement {
  const { handle, statements } = slot;
  const known = statements.get(sql);
  if (known !== undefined) return known;
  let statement: PreparedStatement['statement'];
  try {
    statement = handle.prepare<unknown[], unknown>(withSteadyLimit(sql));
  } catch (error) {
    throw failed(slot, error);
  }
  const { reader: isReader, readonly: isReadOnly } = statement;
  const isPlainRead = isReader && isReadOnly && plainRead.test(sql);
  const prepared = { statement, isReader, isWrite: !isReadOnly, isPlainRead };
  if (statements.size >= MAX_PREPARED) statements.delete(statements.keys().next().value as string);
  statements.set(sql, prepared);
  return prepared;
}

const plainRead = /^\s*(?:select|with)\b/i;

/**
 * Casts the parameter of `limit`. HOT: SQLite plans a statement again each time a value is bound to a bare `limit ?`.
 * This takes ten times as long as reading a row by its key. SQLite does not look into an expression.
 */
function withSteadyLimit(sql: string): string {
  return sql.replaceAll(/\blimit \?/gi, 'limit cast(? as integer)');
}
