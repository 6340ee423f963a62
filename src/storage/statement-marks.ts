import type { CompiledQuery } from 'kysely';

// What our drivers know of a statement besides its text.

const prepared = Symbol('a statement of a fixed text');
const last = Symbol('the last statement of its unit of work');
const committing = Symbol('a statement with which its transaction is committed');
const deferred = Symbol('a statement whose result is not needed');

type Statement = CompiledQuery<never>;

/** The same statement, marked as one whose text is used again and again: PostgreSQL prepares it once per connection. */
export function asPrepared<Query extends Statement>(query: Query): Query {
  return { ...query, [prepared]: true };
}

/**
 * The same statement, marked as the last one of its unit of work: our drivers run it without a transaction if no other
 * statement has begun one, which saves `begin` and `commit`. Its effect is committed when it returns.
 */
export function asLast<Query extends Statement>(query: Query): Query {
  return { ...query, [last]: true };
}

/**
 * The same statement, marked as the last one before the commit. If a transaction is open, PostgreSQL gets the commit
 * together with it, and SQLite commits as soon as it has succeeded. Nothing but the commit may follow.
 *
 * INVARIANT: a statement that fails has no effect, so not `or fail` of SQLite, which keeps the rows before the refused one.
 */
export function asCommitting<Query extends Statement>(query: Query): Query {
  return { ...query, [last]: true, [committing]: true };
}

/**
 * The same statement, marked as one whose result is not needed: in a transaction PostgreSQL gets it together with the
 * next one, at the latest with the `commit`. If it fails, the next one fails with its error.
 */
export function asDeferred<Query extends Statement>(query: Query): Query {
  return { ...query, [deferred]: true };
}

/** Whether `asPrepared` has marked the statement. */
export function isPrepared(query: CompiledQuery): boolean {
  return prepared in query;
}

/** Whether `asLast` has marked the statement. */
export function isLast(query: CompiledQuery): boolean {
  return last in query;
}

/** Whether `asCommitting` has marked the statement. */
export function isCommitting(query: CompiledQuery): boolean {
  return committing in query;
}

/** Whether `asDeferred` has marked the statement. */
export function isDeferred(query: CompiledQuery): boolean {
  return deferred in query;
}

/** After its last statement, a unit of work is only committed. */
export function statementAfterLast(): Error {
  return new Error('a statement follows the last one of its unit of work');
}
