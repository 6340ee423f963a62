import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Compilable, type InsertQueryBuilder, type InsertResult, type Kysely, sql } from 'kysely';
import { isPostgres } from './is-postgres.ts';
import { connectionOf } from './own-kysely.ts';

// What SQLite does besides an insertion takes longer than the insertion itself: for `returning` it creates a temporary
// table, and for a statement of many rows it copies the pages that it changes, to undo all of them if one is refused.

type Insertion<Tables, Table extends keyof Tables> = InsertQueryBuilder<Tables, Table, InsertResult>;

interface WithId {
  readonly id: number;
}

/** The insertion of one row into a table that numbers its rows. Read the number with `insertedId`. */
export function insertionWithId<Tables, Table extends keyof Tables>(
  database: Kysely<Tables>,
  insertion: Insertion<Tables, Table>,
): Compilable<WithId> {
  const compilable = isPostgres(database) ? insertion.returning('id' as never) : insertion;
  return compilable as unknown as Compilable<WithId>;
}

/**
 * As `insertionWithId`; on PostgreSQL the statement fails if no row was inserted, as when a trigger returns null. The commit
 * may be sent together with it, so a check afterwards would come too late.
 */
export function certainInsertionWithId<Tables, Table extends keyof Tables>(
  database: Kysely<Tables>,
  insertion: Insertion<Tables, Table>,
): Compilable<WithId> {
  const withId = insertionWithId(database, insertion);
  if (!isPostgres(database)) return withId;
  return (database as unknown as Kysely<{ inserted: WithId }>)
    .with('inserted', () => withId as never)
    .selectFrom('inserted')
    .select(sql<number>`coalesce(max(id), 0) / count(*)`.as('id'));
}

/** The number of the row that `insertionWithId` has inserted. */
export function insertedId({
  rows: [row],
  insertId,
}: {
  readonly rows: readonly WithId[];
  readonly insertId?: bigint | undefined;
}): number {
  return Number(row?.id ?? insertId);
}

/**
 * An insertion of many rows. If one is refused, the statement fails, and those before it are left; if the disk is full,
 * SQLite ends the whole transaction, and all that are to be committed with it.
 *
 * INVARIANT: only in a transaction that is rolled back when it fails, and that `standApart` was called for.
 */
export function insertionOfMany<Tables, Table extends keyof Tables>(
  database: Kysely<Tables>,
  insertion: Insertion<Tables, Table>,
): Insertion<Tables, Table> {
  return isPostgres(database) ? insertion : insertion.orFail();
}

/**
 * Call it before the first statement of a transaction that may fill the disk. On SQLite, others that wait for the same
 * commit would fail with it.
 */
export function standApart(em: SqlEntityManager): void {
  connectionOf(em)?.standApart?.();
}
