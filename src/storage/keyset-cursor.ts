import { sql } from 'kysely';

/**
 * The SQL condition for the rows after a cursor in a list ordered by newest first. It compares the row value
 * `(created_at_ms, id)`, so an index on both columns is used.
 */
export function olderThan(createdAtMs: number, id: string) {
  return sql<boolean>`(created_at_ms, id) < (${createdAtMs}, ${id})`;
}
