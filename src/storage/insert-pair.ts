import type { SqlEntityManager } from '@mikro-orm/sql';
import { type ColumnDataType, sql } from 'kysely';
import { isPostgres } from './is-postgres.ts';
import { type PreparedQuery, prepareQuery } from './prepared-query.ts';

/** Two tables; rows of the second belong to rows of the first. INVARIANT: they share no column names. */
export interface PairOfTables<First, Second> {
  readonly first: { readonly table: string; readonly columns: readonly (keyof First & string)[] };
  readonly second: {
    readonly table: string;
    /** Every column with its type on PostgreSQL. */
    readonly types: Readonly<Record<keyof Second & string, ColumnDataType>>;
  };
}

/** Inserts both rows, or neither if the first violates a unique index. Result: whether they were inserted. */
export type InsertPair<First, Second> = (
  em: SqlEntityManager,
  first: First,
  second: Second & { readonly [Column in keyof First]?: never },
) => Promise<boolean>;

/**
 * Prepares the insertion of a row and another one that belongs to it.
 *
 * HOT: on PostgreSQL one statement inserts both, because most of the time of an insertion is the round trip. SQLite
 * has no such statement and no round trips.
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
  // Unlike parameters in `values`, those in `select` are not typed by the column.
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
