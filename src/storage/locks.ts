import { LockMode } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { isPostgres } from './is-postgres.ts';
import { prepareQuery } from './prepared-query.ts';

// Locks are for PostgreSQL, where transactions run side by side. SQLite has one writer at a time: from its first
// statement to its end a transaction has the database for itself, and no row that it has read changes meanwhile. There
// names are not locked at all, and the row locks of queries (`forUpdate`, `forKeyShare`, `skipLocked`) are left out by
// the query compiler, so nobody who locks needs to know which database it is.

interface Name {
  readonly name: string;
}

/** 64 bits of the name: two names that share them only wait for each other. */
const lock = prepareQuery<unknown, Name, { locked: unknown }>((database, { name }) =>
  database.selectNoFrom(({ fn, val }) =>
    fn('pg_advisory_xact_lock', [fn('hashtextextended', [val(name), val(0)])]).as('locked'),
  ),
);

const tryLock = prepareQuery<unknown, Name, { locked: boolean }>((database, { name }) =>
  database.selectNoFrom(({ fn, val }) =>
    fn<boolean>('pg_try_advisory_xact_lock', [fn('hashtextextended', [val(name), val(0)])]).as('locked'),
  ),
);

/** Locks a name until the transaction ends: whoever else locks it waits. */
export async function lockName(em: SqlEntityManager, name: string): Promise<void> {
  if (isPostgres(em.getKysely())) await lock(em, { name });
}

/** Locks several names, in one order for everybody, so that no two transactions wait for each other for ever. */
export async function lockNames(em: SqlEntityManager, names: readonly string[]): Promise<void> {
  if (!isPostgres(em.getKysely()) || names.length === 0) return;
  await sql`
    select pg_advisory_xact_lock(name)
    from (select distinct hashtextextended(name, 0) as name from unnest(${names}::text[]) as name order by 1) as names
  `.execute(em.getKysely());
}

/**
 * Locks a name until the transaction ends, unless another transaction has it locked.
 *
 * Result: whether it is locked now. On SQLite always, as no other transaction is at work.
 */
export async function tryLockName(em: SqlEntityManager, name: string): Promise<boolean> {
  if (!isPostgres(em.getKysely())) return true;
  const { rows } = await tryLock(em, { name });
  return rows[0]?.locked === true;
}

/**
 * Options of `em.findOne` for a row that is about to change: it is locked until the transaction ends, and read again
 * even where this unit of work has read it before. MikroORM drops the lock clause on SQLite, which has one writer.
 */
export const lockForUpdate = { lockMode: LockMode.PESSIMISTIC_WRITE, refresh: true } as const;
