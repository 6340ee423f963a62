import type { AbortableQueryOptions } from 'kysely';

/** Properties of a statement that our drivers use, besides its text. */
export interface StatementOptions extends AbortableQueryOptions {
  /** The text is reused, so PostgreSQL prepares it once per connection. */
  readonly isPrepared?: boolean;
  /**
   * The last statement of its unit of work. If no other statement has begun a transaction, our drivers run it without
   * one, which saves `begin` and `commit`. Its effect is committed when it returns.
   */
  readonly isLast?: boolean;
  /**
   * The last statement before the commit. In an open transaction, PostgreSQL gets the commit in the same message, and
   * SQLite commits as soon as the statement has succeeded. Without an open transaction, it behaves like `isLast`. Only
   * the commit may follow.
   *
   * INVARIANT: a failed statement has no effect. This excludes `or fail` of SQLite, which keeps the rows before the
   * refused one.
   */
  readonly commits?: boolean;
  /**
   * The result is not needed. In a transaction, PostgreSQL gets the statement together with the next one, or at the
   * latest with `commit`. If it fails, the next statement fails with its error.
   */
  readonly isDeferred?: boolean;
}

/** After its last statement, a unit of work may only commit. */
export function statementAfterLast(): Error {
  return new Error('a statement follows the last statement of its unit of work');
}
