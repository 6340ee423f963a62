import type { Database as SqliteHandle } from 'better-sqlite3';
import { type AliasableExpression, type Kysely, sql } from 'kysely';
import { isPostgres } from './is-postgres.ts';

/**
 * The sum of a text column of decimal integers, as text. Exact at any size, unlike SQL integers, which end at 2^63;
 * `0` for no rows. The database adds the rows up, so that they need not be fetched.
 */
export function exactSum<Tables>(database: Kysely<Tables>, column: string): AliasableExpression<string> {
  const amount = sql.ref(column);
  return isPostgres(database)
    ? sql<string>`coalesce(sum(${amount}::numeric), 0)::text`
    : sql<string>`exact_sum(${amount})`;
}

/** Defines the function `exact_sum`, which `exactSum` calls, on a SQLite connection. */
export function addExactSum(handle: SqliteHandle): void {
  handle.aggregate('exact_sum', {
    deterministic: true,
    start: () => 0n,
    step: (sum: bigint, amount: unknown) => sum + BigInt(amount as string),
    result: String,
  });
}
