import { EventType, type Transaction as OrmTransaction, TransactionEventBroadcaster } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
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
import type { StatementOptions } from './statement-options.ts';

// HOT: Kysely and MikroORM take three times as long to reach a connection and to run a transaction (bench `sqlite`).
// They await eight promises and create five objects for each statement.

/** A connection for one unit of work, or for one statement. It acquires the database connection when it needs it. */
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
   * Must be called before the first statement. Transactions that were committed before it then do not fail with it.
   * Undefined on databases where they never would.
   */
  standApart?(): void;
  /** Whether this connection blocks others, because a statement has begun its transaction. */
  isHeld(): boolean;
  /** Ends the transaction, if a statement has begun it. */
  end(command: 'commit' | 'rollback'): Promise<void>;
  release(): void;
}

/** A dialect whose connections cost nothing until their first statement. */
export interface OwnDialect extends Dialect {
  open(): UnitConnection;
  /** Runs a statement outside of transactions. */
  execute<Row>(query: CompiledQuery, options?: StatementOptions): Promise<QueryResult<Row>>;
}

/** A driver for Kysely over such connections. */
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

/** Kysely's executor, which runs statements directly. */
function executorOf({ compiler, adapter }: Parts, through: ConnectionProvider, run: Run): QueryExecutor {
  return Object.assign(new DefaultQueryExecutor(compiler, adapter, through), { executeQuery: run });
}

/** The parts of a dialect. */
export function partsOf(dialect: OwnDialect): Parts {
  return {
    config: { dialect },
    dialect,
    driver: dialect.createDriver(),
    compiler: dialect.createQueryCompiler(),
    adapter: dialect.createAdapter(),
  };
}

/** Kysely over our connections. Each statement outside a transaction gets its own connection. */
export function createKysely(parts: Parts): Kysely<unknown> {
  const { dialect } = parts;
  const through: ConnectionProvider = { provideConnection: (consumer) => consumer(dialect.open()) };
  return new Kysely<unknown>({ ...parts, executor: executorOf(parts, through, dialect.execute) });
}

/** An open transaction, as a property of Kysely's object for it. */
interface Entered {
  readonly opened?: OpenTransaction;
}

/** An open transaction, or a savepoint in one. */
interface OpenTransaction {
  readonly connection: UnitConnection;
  readonly state: { isOver: boolean };
  /** The number of enclosing savepoints. */
  readonly depth: number;
}

/** Transactions that bypass the entity manager. */
interface Direct {
  begin(): Transaction<unknown>;
  isObserved(): boolean;
}

/** A connection of MikroORM with `ownTransactions`. */
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

/** Like `em.begin`, but synchronous: nothing is sent before the first statement. */
export function beginTransaction(em: SqlEntityManager): void {
  em.setTransactionContext(directOf(em).begin());
}

/** Like `em.commit`, but without a flush. */
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
 * Whether the unit of work of `em` blocks others: it has a PostgreSQL connection with an open transaction, or the only
 * connection of SQLite. On PostgreSQL, a unit of work that has only read does not.
 */
export function holdsConnection(em: SqlEntityManager): boolean {
  return connectionOf(em)?.isHeld() ?? false;
}

/** The connection of an entity manager that is in a transaction. */
export function connectionOf(em: SqlEntityManager): UnitConnection | undefined {
  return em.getTransactionContext<OrmTransaction & Entered>()?.opened?.connection;
}

/**
 * Makes the entity manager begin and end transactions on our connections.
 *
 * NOTE: only the MikroORM events before and after a commit are dispatched. Tests stop the server there.
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
