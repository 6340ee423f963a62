import {
  EventType,
  isRaw,
  type Transaction as OrmTransaction,
  type RawQueryFragment,
  raw,
  TransactionEventBroadcaster,
  Utils,
} from '@mikro-orm/core';
import { type AbstractSqlConnection, NativeQueryBuilder, type SqlEntityManager } from '@mikro-orm/sql';
import {
  type AbortableQueryOptions,
  CompiledQuery,
  type ConnectionProvider,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type DialectAdapter,
  type Driver,
  Kysely,
  type KyselyProps,
  type QueryCompiler,
  type QueryExecutor,
  type QueryResult,
  Transaction,
  type TransactionSettings,
} from 'kysely';
import type { Orm } from './open-database.ts';

/** What our drivers must know about a statement, besides its text and its parameters. */
export interface StatementOptions extends AbortableQueryOptions {
  /** Marks a statement whose text is reused, so PostgreSQL prepares it once per connection. */
  readonly isPrepared?: boolean;
  /**
   * Marks the last statement of its unit of work. If no other statement has begun a transaction, our drivers run it
   * without one, which saves `begin` and `commit`. Its effect is committed when it returns.
   */
  readonly isLast?: boolean;
  /**
   * Marks the last statement before the commit. In an open transaction, PostgreSQL gets the commit in the same message,
   * and SQLite commits as soon as the statement has succeeded. Without an open transaction, it behaves like `isLast`.
   * Only the commit may follow.
   *
   * NOTE: when the statement fails, it must have no effect. This excludes `or fail` of SQLite, which keeps the rows
   * before the refused one.
   */
  readonly commits?: boolean;
  /**
   * Marks a statement whose result is not needed. In a transaction, PostgreSQL gets the statement together with the
   * next one, or at the latest with `commit`. If it fails, the next statement fails with its error.
   */
  readonly isDeferred?: boolean;
}

/** Creates the error for a statement after the last statement of its unit of work. */
export function statementAfterLast(): Error {
  return new Error('a statement follows the last statement of its unit of work');
}

// HOT: Kysely's and MikroORM's own code takes three times as long to acquire a connection and to run a transaction
// (bench `sqlite`). It awaits eight promises and creates five objects for each statement.

/**
 * A connection for one unit of work, or for one statement outside transactions. It acquires a database connection when
 * it needs one.
 */
export interface UnitConnection extends DatabaseConnection {
  executeQuery<Row>(query: CompiledQuery, options?: StatementOptions): Promise<QueryResult<Row>>;
  /**
   * Begins a transaction. Nothing is sent before its first statement.
   *
   * @param isObserved whether an observer of the commit may add statements. On SQLite, a statement with `commits` then
   * leaves the transaction open if an earlier statement has begun it.
   */
  begin(settings: TransactionSettings, isObserved?: boolean): void;
  /**
   * Keeps this transaction out of a group commit, so that its failure cannot make the earlier transactions of the group
   * fail. Call it before the first statement. Undefined on databases without group commit.
   */
  standApart?(): void;
  /** Returns whether this connection blocks other units of work, because a statement has begun its transaction. */
  isHeld(): boolean;
  /** Ends the transaction, if a statement has begun it. */
  end(command: 'commit' | 'rollback'): Promise<void>;
  release(): void;
}

/** A dialect whose connections do no work until their first statement. */
export interface OwnDialect extends Dialect {
  open(): UnitConnection;
  /** Runs a statement outside of transactions. */
  execute<Row>(query: CompiledQuery, options?: StatementOptions): Promise<QueryResult<Row>>;
}

/** Returns a driver for Kysely that uses these connections. */
export function driverOf({ open }: Pick<OwnDialect, 'open'>, destroy: () => Promise<void>): Driver {
  const own = (connection: DatabaseConnection) => connection as UnitConnection;
  const savepoints = (sqlOf: (name: string) => string) => (connection: DatabaseConnection, name: string) =>
    connection.executeQuery(CompiledQuery.raw(sqlOf(name))).then(() => undefined);
  return {
    init: async () => {},
    acquireConnection: async () => open(),
    beginTransaction: async (connection, settings) => own(connection).begin(settings),
    commitTransaction: async (connection) => own(connection).end('commit'),
    rollbackTransaction: async (connection) => own(connection).end('rollback'),
    savepoint: savepoints((name) => `savepoint "${name}"`),
    rollbackToSavepoint: savepoints((name) => `rollback to savepoint "${name}"`),
    releaseSavepoint: savepoints((name) => `release savepoint "${name}"`),
    releaseConnection: async (connection) => own(connection).release(),
    destroy,
  };
}

type Run = <Row>(query: CompiledQuery, options?: StatementOptions) => Promise<QueryResult<Row>>;

/** The state that all transactions of a database share. */
interface Parts extends Omit<KyselyProps, 'executor'> {
  readonly dialect: OwnDialect;
  readonly compiler: QueryCompiler;
  readonly adapter: DialectAdapter;
}

/** Returns an executor of Kysely that runs queries with `run` instead of acquiring a connection itself. */
function executorOf({ compiler, adapter }: Parts, through: ConnectionProvider, run: Run): QueryExecutor {
  return Object.assign(new DefaultQueryExecutor(compiler, adapter, through), { executeQuery: run });
}

export function partsOf(dialect: OwnDialect): Parts {
  return {
    config: { dialect },
    dialect,
    driver: dialect.createDriver(),
    compiler: dialect.createQueryCompiler(),
    adapter: dialect.createAdapter(),
  };
}

/** Returns Kysely on our connections. Each statement outside a transaction gets its own connection. */
export function createKysely(parts: Parts): Kysely<unknown> {
  const { dialect } = parts;
  const through: ConnectionProvider = { provideConnection: (consumer) => consumer(dialect.open()) };
  return new Kysely<unknown>({ ...parts, executor: executorOf(parts, through, dialect.execute) });
}

/** Kysely's object for a transaction, which refers to the open transaction. */
interface Entered {
  readonly opened?: OpenTransaction;
}

interface OpenTransaction {
  readonly connection: UnitConnection;
  readonly state: { isOver: boolean };
  /** The number of enclosing savepoints. */
  readonly depth: number;
}

/** Begins transactions without the entity manager. */
interface Direct {
  begin(): Transaction<unknown>;
  isObserved(): boolean;
}

/** A connection of MikroORM after `ownTransactions`. */
interface OwnConnection {
  readonly direct: Direct;
}

function directOf(em: SqlEntityManager): Direct {
  const connection = em.getConnection('write');
  if (!hasOwnTransactions(connection))
    throw new Error('the database was opened without its own transactions');
  return connection.direct;
}

function hasOwnTransactions<Connection extends object>(
  connection: Connection,
): connection is Connection & OwnConnection {
  return 'direct' in connection;
}

/** Works like `em.begin`, but synchronously: nothing is sent before the first statement. */
export function beginTransaction(em: SqlEntityManager): void {
  em.setTransactionContext(directOf(em).begin());
}

/** Works like `em.commit`, but without a flush. */
export async function commitTransaction(em: SqlEntityManager): Promise<void> {
  const ctx = em.getTransactionContext<OrmTransaction & Entered>()!;
  const { connection, state, depth } = ctx.opened!;
  if (depth > 0 || directOf(em).isObserved()) {
    await em.getConnection('write').commit(ctx, new TransactionEventBroadcaster(em));
  } else {
    await connection.end('commit');
    state.isOver = true;
  }
  em.resetTransactionContext();
}

/**
 * Returns whether the unit of work of `em` blocks others: it has a PostgreSQL connection with an open transaction, or
 * the only connection of SQLite. On PostgreSQL, a unit of work that has only read does not.
 */
export function holdsConnection(em: SqlEntityManager): boolean {
  return connectionOf(em)?.isHeld() ?? false;
}

export function connectionOf(em: SqlEntityManager): UnitConnection | undefined {
  return em.getTransactionContext<OrmTransaction & Entered>()?.opened?.connection;
}

/**
 * Makes the entity manager begin and end transactions on our connections.
 *
 * NOTE: of MikroORM's events, only the ones before and after a commit are dispatched. Tests use them to stop the server
 * at these points.
 */
export function ownTransactions(orm: Orm, parts: Parts): void {
  const connection = orm.em.getConnection();

  const own = {
    async begin({ ctx, isolationLevel, readOnly }: BeginOptions = {}) {
      const outer = ctx?.opened;
      if (outer !== undefined) {
        const inner = { ...outer, depth: outer.depth + 1 };
        await outer.connection.executeQuery(CompiledQuery.raw(`savepoint "trx${inner.depth}"`), deferred);
        return enter(inner);
      }
      return beginOuter({
        ...(isolationLevel !== undefined && { isolationLevel }),
        ...(readOnly === true && { accessMode: 'read only' }),
      });
    },
    async commit(ctx: Transaction<unknown> & Entered, events?: TransactionEventBroadcaster) {
      const { connection: used, depth, state } = ctx.opened!;
      const observers = isObserved() ? events : undefined;
      await observers?.dispatchEvent(EventType.beforeTransactionCommit, ctx);
      if (depth > 0) {
        await used.executeQuery(CompiledQuery.raw(`release savepoint "trx${depth}"`), deferred);
      } else {
        await used.end('commit');
        state.isOver = true;
      }
      await observers?.dispatchEvent(EventType.afterTransactionCommit, ctx);
    },
    async rollback(ctx: Entered) {
      const { connection: used, depth, state } = ctx.opened!;
      if (depth > 0) {
        await used.executeQuery(CompiledQuery.raw(`rollback to savepoint "trx${depth}"`), {
          isPrepared: true,
        });
        return;
      }
      state.isOver = true;
      await used.end('rollback');
    },
  };
  Object.assign(connection, own, { direct: { begin: beginOuter, isObserved } } satisfies OwnConnection);

  function beginOuter(settings: TransactionSettings = {}): Transaction<unknown> {
    const begun = parts.dialect.open();
    begun.begin(settings, isObserved());
    return enter({ connection: begun, state: { isOver: false }, depth: 0 });
  }

  function isObserved(): boolean {
    return orm.em.getEventManager().getSubscribers().size > 0;
  }

  function enter(transaction: OpenTransaction): Transaction<unknown> {
    const { connection: used, depth, state } = transaction;
    const run: Run = async (query, options) => {
      if (state.isOver) throw new Error('the transaction has ended');
      return await used.executeQuery(query, options);
    };
    const through: ConnectionProvider = { provideConnection: (consumer) => consumer(used) };
    const entered = Object.assign(
      new Transaction<unknown>({ ...parts, executor: executorOf(parts, through, run) }),
      { opened: transaction },
    );
    // MikroORM recognizes a savepoint by this property.
    return depth === 0 ? entered : Object.assign(entered, { savepointName: `trx${depth}` });
  }
}

interface BeginOptions {
  readonly ctx?: Entered;
  readonly isolationLevel?: NonNullable<TransactionSettings['isolationLevel']>;
  readonly readOnly?: boolean;
}

const deferred: StatementOptions = { isPrepared: true, isDeferred: true };

type Execute = AbstractSqlConnection['execute'];
type Result = Awaited<ReturnType<Execute>>;

/** Returns the placeholder of the n-th parameter, counted from 1. */
export type Placeholder = (number: number) => string;

/**
 * Makes the entity manager send values as parameters. MikroORM 7 writes them into the SQL text
 * (mikro-orm/mikro-orm#8001). Such statements cannot be reused as prepared statements, and the database would log
 * stored values with every failed statement.
 */
export function bindValues(orm: Orm, placeholder: Placeholder): void {
  const connection = orm.em.getConnection();
  const platform = orm.em.getPlatform();

  function compile(sql: string, params: readonly unknown[]): CompiledQuery {
    const values: unknown[] = [];
    const bind = (value: unknown): string => {
      if (isRaw(value)) return fill(value.sql, value.params);
      if (Array.isArray(value)) return value.map(bind).join(', ');
      values.push(Utils.isPlainObject(value) ? JSON.stringify(value) : (value ?? null));
      return placeholder(values.length);
    };
    // MikroORM's placeholders: `?` is a value, `??` an identifier, `\?` a question mark.
    const fill = (text: string, given: readonly unknown[]): string => {
      let next = 0;
      return text.replaceAll(/\\\?|\?\??/g, (mark) => {
        if (mark === '\\?') return '?';
        const value = given[next++];
        return mark === '??' ? platform.quoteIdentifier(value as string) : bind(value);
      });
    };
    const text = params.length === 0 ? sql : fill(sql, params);
    return CompiledQuery.raw(text, values);
  }

  connection.execute = async function execute(query, params = [], method = 'all', ctx) {
    const { sql, params: values } = toFragment(query, params);
    const client: Kysely<unknown> = ctx ?? connection.getClient();
    const { rows, numAffectedRows, insertId } = await client.executeQuery(compile(sql, values));
    if (method === 'all') return rows as Result;
    if (method === 'get') return rows[0] as Result;
    return {
      affectedRows: Number(numAffectedRows ?? rows.length),
      insertId: insertId === undefined ? undefined : Number(insertId),
      row: rows[0],
      rows,
    } as Result;
  } as Execute;
}

function toFragment(
  query: Parameters<Execute>[0],
  params: NonNullable<Parameters<Execute>[1]>,
): Pick<RawQueryFragment, 'sql' | 'params'> {
  if (query instanceof NativeQueryBuilder) return query.toRaw();
  if (isRaw(query)) return query;
  return Array.isArray(params) ? { sql: query as string, params } : raw(query as string, params);
}
