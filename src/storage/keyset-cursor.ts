import { sql } from 'kysely';

/**
 * The rows that follow a cursor in a list that is newest first, as an SQL condition on the row value
 * `(created_at_ms, id)`, which an index on both answers.
 */
export function olderThan(createdAtMs: number, id: string) {
  return sql<boolean>`(created_at_ms, id) < (${createdAtMs}, ${id})`;
}
