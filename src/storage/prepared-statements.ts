import type { Platform } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  type ColumnDataType,
  type Compilable,
  type CompiledQuery,
  type InsertQueryBuilder,
  type InsertResult,
  type Kysely,
  sql,
} from 'kysely';
import { connectionOf, type StatementOptions } from './own-kysely.ts';
import { isPostgres } from './sql-functions.ts';

/** Runs a prepared query in the unit of work of `em`. */
export type PreparedQuery<Input, Row> = (
  em: SqlEntityManager,
  input: Input,
  options?: Omit<StatementOptions, 'isPrepared'>,
) => Promise<{ readonly rows: Row[]; readonly numAffectedRows?: bigint; readonly insertId?: bigint }>;

/** Stands for a value that is passed with each run of a prepared query. */
interface Slot {
  readonly slot: PropertyKey;
}

/**
 * Prepares a query that Kysely builds and compiles once per kind of database instead of once per request. Compiling is
 * most of the cost of a short query. Use it for frequent statements of a fixed shape.
 *
 * @param build must pass the members of `input` on unchanged, because it runs only once.
 */
export function prepareQuery<Tables, Input extends object, Row = never>(
  build: (database: Kysely<Tables>, input: Input) => Compilable<Row>,
): PreparedQuery<Input, Row> {
  // The compiled query, by the class of the platform, because all databases of a kind use the same SQL.
  const compiled = new WeakMap<Platform['constructor'], CompiledQuery<Row>>();
  return (em, input, options) => {
    const database = kyselyOf<Tables>(em);
    const platform = em.getPlatform().constructor;
    let query = compiled.get(platform);
    if (query === undefined) {
      query = build(database, slots as Input).compile();
      compiled.set(platform, query);
    }
    const prepared: StatementOptions = { ...options, isPrepared: true };
    // Kysely's own method would add two promises.
    return database
      .getExecutor()
      .executeQuery({ ...query, parameters: fill(query.parameters, input) }, prepared);
  };
}

/** Works like `em.getKysely`, whose type cannot be stated for unknown tables. */
function kyselyOf<Tables>(em: SqlEntityManager): Kysely<Tables> {
  return em.getTransactionContext<Kysely<Tables>>() ?? em.getConnection('write').getClient<Tables>();
}

function fill<Input extends object>(parameters: readonly unknown[], input: Input): unknown[] {
  const filled: unknown[] = [];
  for (const value of parameters) filled.push(isSlot(value) ? input[value.slot as keyof Input] : value);
  return filled;
}

const slots = new Proxy({}, { get: (_, slot): Slot => ({ slot }) });

function isSlot(value: unknown): value is Slot {
  return typeof value === 'object' && value !== null && 'slot' in value;
}

// On SQLite, two side effects of an insertion cost more than the insertion itself. `returning` creates a temporary
// table. A statement with many rows copies the pages that it changes, so that it can undo all rows if one is refused.

type Insertion<Tables, Table extends keyof Tables> = InsertQueryBuilder<Tables, Table, InsertResult>;

interface WithId {
  readonly id: number;
}

/**
 * Returns the insertion of one row into a table that numbers its rows. `insertedId` reads the number from the result.
 */
export function insertionWithId<Tables, Table extends keyof Tables>(
  database: Kysely<Tables>,
  insertion: Insertion<Tables, Table>,
): Compilable<WithId> {
  const compilable = isPostgres(database) ? insertion.returning('id' as never) : insertion;
  return compilable;
}

/**
 * Works like `insertionWithId`. On PostgreSQL, the statement also fails if no row was inserted, for example because a
 * trigger returned null. A check afterwards would come too late, because the commit may be sent together with the
 * statement.
 */
export function certainInsertionWithId<Tables, Table extends keyof Tables>(
  database: Kysely<Tables>,
  insertion: Insertion<Tables, Table>,
): Compilable<WithId> {
  const withId = insertionWithId(database, insertion);
  if (!isPostgres(database)) return withId;
  const counted = sql<WithId>`with inserted as (${withId}) select coalesce(max(id), 0) / count(*) as id from inserted`;
  return { compile: () => counted.compile(database) };
}

/** Returns the number of the row that `insertionWithId` has inserted. */
export function insertedId({
  rows: [row],
  insertId,
}: {
  readonly rows: readonly WithId[];
  readonly insertId?: bigint | undefined;
}): number {
  return Number(row?.id ?? insertId);
}

/**
 * Returns the insertion of many rows. If one row is refused on SQLite, the statement fails, but the rows before it
 * stay. If the disk is full, SQLite ends the whole transaction, and with it all transactions of the same group commit.
 *
 * NOTE: use it only in a transaction that is rolled back when the statement fails, and after `standApart`.
 */
export function insertionOfMany<Tables, Table extends keyof Tables>(
  database: Kysely<Tables>,
  insertion: Insertion<Tables, Table>,
): Insertion<Tables, Table> {
  return isPostgres(database) ? insertion : insertion.orFail();
}

/**
 * Keeps the transaction of `em` out of a group commit. Call it before the first statement of a transaction that may
 * fill the disk: on SQLite, the other transactions of its group commit would fail as well.
 */
export function standApart(em: SqlEntityManager): void {
  connectionOf(em)?.standApart?.();
}

/** Two tables. Each row of the second belongs to a row of the first. They must share no column names. */
interface PairOfTables<First, Second> {
  readonly first: { readonly table: string; readonly columns: readonly (keyof First & string)[] };
  readonly second: {
    readonly table: string;
    readonly types: Readonly<Record<keyof Second & string, ColumnDataType>>;
  };
}

/**
 * Inserts both rows, or neither if the first row violates a unique index.
 * @returns whether they were inserted.
 */
type InsertPair<First, Second> = (
  em: SqlEntityManager,
  first: First,
  second: Second & { readonly [Column in keyof First]?: never },
) => Promise<boolean>;

/**
 * Prepares the insertion of a row and of a second row that belongs to it.
 *
 * HOT: on PostgreSQL one statement inserts both, because the round trip takes most of the time. SQLite has no such
 * statement, and no round trips.
 */
export function prepareInsertPair<First extends object, Second extends object>(
  tables: PairOfTables<First, Second>,
): InsertPair<First, Second> {
  const insertFirst = prepare<First>((row) => insertUnlessRefused(tables.first, row));
  const insertSecond = prepare<Second>((row) => insertSecondOf(tables.second, row));
  const insertBoth = prepare<First & Second>((row) => insertBothOf(tables, row));
  return async (em, first, second) => {
    if (isPostgres(em.getKysely())) {
      return (await insertBoth(em, { ...first, ...second })).numAffectedRows === 1n;
    }
    const { numAffectedRows } = await insertFirst(em, first);
    if (numAffectedRows === 0n) return false;
    await insertSecond(em, second);
    return true;
  };
}

type Statement = ReturnType<typeof sql>;

function prepare<Row extends object>(build: (row: Row) => Statement): PreparedQuery<Row, unknown> {
  return prepareQuery<unknown, Row, unknown>((database, row) => ({
    compile: () => build(row).compile(database),
  }));
}

function insertUnlessRefused<Row>(
  { table, columns }: { table: string; columns: readonly (keyof Row & string)[] },
  row: Row,
): Statement {
  const values = columns.map((column) => row[column]);
  return sql`${into(table, columns)} values (${sql.join(values)}) on conflict do nothing`;
}

function insertSecondOf<Row>({ table, types }: { table: string; types: object }, row: Row): Statement {
  const columns = Object.keys(types) as (keyof Row & string)[];
  return sql`${into(table, columns)} values (${sql.join(columns.map((column) => row[column]))})`;
}

function insertBothOf<First, Second>(
  { first, second }: PairOfTables<First, Second>,
  row: First & Second,
): Statement {
  const types = Object.entries(second.types) as [keyof Second & string, ColumnDataType][];
  // Unlike values in `values`, values in `select` do not get the types of their columns.
  const values = types.map(([column, type]) => sql`cast(${row[column]} as ${sql.raw(type)})`);
  return sql`
    with first as (${insertUnlessRefused<First>(first, row)} returning 1)
    ${into(
      second.table,
      types.map(([column]) => column),
    )}
    select ${sql.join(values)} from first
  `;
}

function into(table: string, columns: readonly string[]): Statement {
  return sql`insert into ${sql.table(table)} (${sql.join(columns.map((column) => sql.ref(column)))})`;
}
