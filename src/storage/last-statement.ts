import type { CompiledQuery } from 'kysely';

const mark = Symbol('the last statement of its unit of work');

/**
 * The same statement, marked as the last one of its unit of work: our drivers run it without a transaction if no other
 * statement has begun one, which saves `begin` and `commit`. Its effect is committed when it returns.
 */
export function asLast<Query extends CompiledQuery<never>>(query: Query): Query {
  return { ...query, [mark]: true };
}

/** Whether `asLast` has marked the statement. */
export function isLast(query: CompiledQuery): boolean {
  return mark in query;
}

/** After its last statement, a unit of work is only committed. */
export function statementAfterLast(): Error {
  return new Error('a statement follows the last one of its unit of work');
}
