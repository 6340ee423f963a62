import { LockMode } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { isPostgres } from './is-postgres.ts';
import { prepareQuery } from './prepared-query.ts';

// Only PostgreSQL needs locks: its transactions run side by side. SQLite has one writer at a time: from its first
// statement to its end a transaction has the database to itself, and no row that it has read changes meanwhile. There
// locking a name does nothing, and the query compiler leaves out row locks (`forUpdate`, `forKeyShare`, `skipLocked`),
// so the code that locks does not need to know which database it runs on.

interface Name {
  readonly name: string;
}

/** Locks 64 bits of a hash. Two names with the same hash only wait for each other. */
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

/**
 * Locks a name until the transaction ends. Other transactions that lock it wait.
 *
 * @param options `isDeferred`: the next statement waits for the lock instead, as `asDeferred` says.
 */
export async function lockName(
  em: SqlEntityManager,
  name: string,
  options?: { readonly isDeferred: boolean },
): Promise<void> {
  if (isPostgres(em.getKysely())) await lock(em, { name }, options);
}

/** Locks several names, always in the same order, so that two transactions cannot deadlock on them. */
export async function lockNames(em: SqlEntityManager, names: readonly string[]): Promise<void> {
  if (!isPostgres(em.getKysely()) || names.length === 0) return;
  await sql`
    select pg_advisory_xact_lock(name)
    from (select distinct hashtextextended(name, 0) as name from unnest(${names}::text[]) as name order by 1) as names
  `.execute(em.getKysely());
}

/**
 * Locks a name until the transaction ends, unless another transaction holds it.
 *
 * Result: whether this transaction holds it now; always true on SQLite, where no other transaction is open.
 */
export async function tryLockName(em: SqlEntityManager, name: string): Promise<boolean> {
  if (!isPostgres(em.getKysely())) return true;
  const { rows } = await tryLock(em, { name });
  return rows[0]?.locked === true;
}

/**
 * Options of `em.findOne` for a row that will be changed: it is locked until the transaction ends, and read again
 * even if this unit of work has read it before. MikroORM omits the lock on SQLite.
 */
export const lockForUpdate = { lockMode: LockMode.PESSIMISTIC_WRITE, refresh: true } as const;

/** As `lockForUpdate`, without the rows that another transaction has locked. */
export const lockUnlocked = { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE, refresh: true } as const;
