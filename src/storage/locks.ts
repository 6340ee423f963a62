import { LockMode } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { prepareQuery } from './prepared-statements.ts';
import { isPostgres } from './sql-functions.ts';

// Only PostgreSQL needs locks, because its transactions are concurrent. SQLite has one writer: from its first statement
// to its end, a transaction has the database to itself. On SQLite, locking a name therefore does nothing, and the query
// compiler leaves out row locks (`forUpdate`, `forKeyShare`, `skipLocked`). Code that locks need not know which
// database it uses.

/** The kind of a lock. Names of different kinds never collide. */
type LockKind =
  | 'accounts'
  | 'aggregations'
  | 'audit keys'
  | 'audit log'
  | 'automations'
  | 'device codes'
  | 'device guesses'
  | 'fiat accounts'
  | 'idempotency'
  | 'import'
  | 'nonces'
  | 'operators'
  | 'partitions'
  | 'restores'
  | 'totals'
  | 'webhook endpoints'
  | 'webhook fan-out';

interface Name {
  /** The kind, a line feed, and the name. */
  readonly name: string;
  /** The name alone, which servers older than migration 30 lock. */
  readonly earlier: string;
}

const nameOf = (kind: LockKind, name: string): Name => ({ name: `${kind}\n${name}`, earlier: name });

// Clients choose parts of names, such as idempotency keys. A lock is therefore a 64-bit hash that depends on a secret
// in the database, so that no client can find names that share a lock. The database computes the hash, so all servers
// agree. If the secret is missing, all servers compute the hash without it.
//
// Servers older than migration 30 lock a hash that anyone can compute. While such a server is registered, each lock is
// taken in both ways, so that both versions exclude each other.
const keyed = sql`('x' || left(encode(sha256(convert_to(coalesce((select secret from lock_secrets limit 1), '') || name, 'UTF8')), 'hex'), 16))::bit(64)::bigint`;
const earlier = sql`hashtextextended(earlier, 0)`;
const isEarlierRunning = sql`exists (select from server_processes where keyed_locks = 0)`;
const locking = sql`case when ${isEarlierRunning} then pg_advisory_xact_lock(${earlier}) end, pg_advisory_xact_lock(${keyed})`;

const lock = prepareQuery<unknown, Name>((database, names) => ({
  compile: () =>
    sql<never>`
      select ${locking} from (select ${names.name}::text as name, ${names.earlier}::text as earlier) as names
    `.compile(database),
}));

const tryLock = prepareQuery<unknown, Name, { locked: boolean }>((database, names) => ({
  compile: () =>
    sql<{ locked: boolean }>`
      select case when case when ${isEarlierRunning} then pg_try_advisory_xact_lock(${earlier}) else true end
        then pg_try_advisory_xact_lock(${keyed}) else false end as locked
      from (select ${names.name}::text as name, ${names.earlier}::text as earlier) as names
    `.compile(database),
}));

/**
 * Locks a name until the transaction ends. Other transactions that lock the name wait.
 *
 * @param options `isDeferred`: the next statement, not this one, waits for the lock; see `StatementOptions`.
 */
export async function lockName(
  em: SqlEntityManager,
  kind: LockKind,
  name: string,
  options?: { readonly isDeferred: boolean },
): Promise<void> {
  if (isPostgres(em.getKysely())) await lock(em, nameOf(kind, name), options);
}

/** Locks several names, always in the same order, so that transactions cannot deadlock. */
export async function lockNames(
  em: SqlEntityManager,
  kind: LockKind,
  names: readonly string[],
): Promise<void> {
  if (!isPostgres(em.getKysely()) || names.length === 0) return;
  // Servers older than migration 30 lock them in this order.
  await sql`
    select ${locking}
    from (
      select distinct ${`${kind}\n`}::text || earlier as name, earlier, hashtextextended(earlier, 0) as place
      from unnest(${names}::text[]) as earlier order by place, name
    ) as names
  `.execute(em.getKysely());
}

/**
 * Locks a name until the transaction ends, unless another transaction holds the lock.
 * @returns whether this transaction now holds the lock. On SQLite always true, because no other transaction is open.
 */
export async function tryLockName(em: SqlEntityManager, kind: LockKind, name: string): Promise<boolean> {
  if (!isPostgres(em.getKysely())) return true;
  const { rows } = await tryLock(em, nameOf(kind, name));
  return rows[0]?.locked === true;
}

/**
 * Options of `em.findOne` for a row that will be changed. The row is locked until the transaction ends, and read again
 * even if this unit of work has read it before. MikroORM omits the lock on SQLite.
 */
export const lockForUpdate = { lockMode: LockMode.PESSIMISTIC_WRITE, refresh: true } as const;

/** Like `lockForUpdate`, but skips rows that another transaction has locked. */
export const lockUnlocked = { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE, refresh: true } as const;
