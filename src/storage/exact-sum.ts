import type { Database as SqliteHandle } from 'better-sqlite3';
import { type AliasableExpression, type Kysely, sql } from 'kysely';
import { isPostgres } from './is-postgres.ts';

/**
 * The sum of a text column that holds integers of any size, as text: exact, where SQL's integers end at 2^63. `0` when
 * there are no rows. One row comes back instead of all that are added up.
 */
export function exactSum<Tables>(database: Kysely<Tables>, column: string): AliasableExpression<string> {
  const amount = sql.ref(column);
  return isPostgres(database)
    ? sql<string>`coalesce(sum(${amount}::numeric), 0)::text`
    : sql<string>`exact_sum(${amount})`;
}

/** Gives a SQLite connection the `exact_sum` that `exactSum` calls. */
export function addExactSum(handle: SqliteHandle): void {
  handle.aggregate('exact_sum', {
    deterministic: true,
    start: () => 0n,
    step: (sum: bigint, amount: unknown) => sum + BigInt(amount as string),
    result: String,
  });
}
