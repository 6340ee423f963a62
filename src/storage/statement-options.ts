import type { AbortableQueryOptions } from 'kysely';

/** The facts about a statement that our drivers use, besides its text. */
export interface StatementOptions extends AbortableQueryOptions {
  /** Its text is used again and again: PostgreSQL prepares it once per connection. */
  readonly isPrepared?: boolean;
  /**
   * It is the last one of its unit of work: our drivers run it without a transaction if no other statement has begun one,
   * which saves `begin` and `commit`. Its effect is committed when it returns.
   */
  readonly isLast?: boolean;
  /**
   * It is the last one before the commit. If a transaction is open, PostgreSQL gets the commit together with it, and SQLite
   * commits as soon as it has succeeded. If none is open, it is as with `isLast`. Nothing but the commit may follow.
   *
   * INVARIANT: a statement that fails has no effect, so not `or fail` of SQLite, which keeps the rows before the refused one.
   */
  readonly commits?: boolean;
  /**
   * Its result is not needed: in a transaction PostgreSQL gets it together with the next one, at the latest with the
   * `commit`. If it fails, the next one fails with its error.
   */
  readonly isDeferred?: boolean;
}

/** After its last statement, a unit of work is only committed. */
export function statementAfterLast(): Error {
  return new Error('a statement follows the last one of its unit of work');
}
