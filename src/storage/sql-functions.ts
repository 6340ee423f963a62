import { JsonType, p, raw, UnderscoreNamingStrategy } from '@mikro-orm/core';
import type { Database as SqliteHandle } from 'better-sqlite3';
import { type AliasableExpression, type Kysely, PostgresAdapter, sql } from 'kysely';

/** Defines a property that is stored as JSON in a text column. Kysely reads and writes it as a string. */
export function jsonText<Value>() {
  return p.json<Value>().columnType('text').$type<Value, string>();
}

interface Declared {
  readonly meta: {
    readonly tableName?: string;
    readonly properties: Readonly<Record<string, { readonly type?: unknown }>>;
  };
}

/** Returns the JSON columns of each table: the ones that entities declare, and `more`. */
export function jsonColumnsOf(
  entities: readonly unknown[],
  more: readonly (readonly [table: string, column: string])[],
): ReadonlyMap<string, readonly string[]> {
  const naming = new UnderscoreNamingStrategy();
  const columns = new Map<string, string[]>();
  const add = (table: string, column: string): void =>
    void columns.set(table, [...(columns.get(table) ?? []), column]);
  for (const { meta } of entities as readonly Declared[]) {
    for (const [name, { type }] of Object.entries(meta.properties)) {
      if (type === JsonType || type instanceof JsonType) {
        add(meta.tableName!, naming.propertyToColumnName(name));
      }
    }
  }
  for (const [table, column] of more) add(table, column);
  return columns;
}

/** Returns whether the database is PostgreSQL, not SQLite. Use it only in this folder. */
export function isPostgres<Tables>(database: Kysely<Tables>): boolean {
  return database.getExecutor().adapter instanceof PostgresAdapter;
}

/**
 * Returns an SQL expression for the sum of a text column of decimal integers, as text; `0` without rows. The sum is
 * exact at any size, unlike SQL integers, which overflow at 2^63.
 */
export function exactSum<Tables>(database: Kysely<Tables>, column: string): AliasableExpression<string> {
  const amount = sql.ref(column);
  return isPostgres(database)
    ? sql<string>`coalesce(sum(${amount}::numeric), 0)::text`
    : sql<string>`exact_sum(${amount})`;
}

/** Defines the SQL function that `exactSum` uses on a SQLite connection. */
export function addExactSum(handle: SqliteHandle): void {
  handle.aggregate('exact_sum', {
    deterministic: true,
    start: () => 0n,
    step: (sum: bigint, amount: unknown) => sum + BigInt(amount as string),
    result: String,
  });
}

/** Returns a condition for `em.find`: a lower-case text column contains `text`, ignoring case. */
export function containsText(column: string, text: string) {
  const pattern = `%${text.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
  return { [raw(`${column} like ? escape '\\'`, [pattern])]: [] };
}
