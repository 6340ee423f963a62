import type { SqlEntityManager } from '@mikro-orm/sql';
import { StaleReadError } from '../errors.ts';
import { isDatabaseCollision } from '../storage/database-errors.ts';

/** One fork of the EntityManager, inside a transaction when it may write. */
export interface UnitOfWork {
  readonly em: SqlEntityManager;
  /** Flushes and commits. */
  commit(): Promise<void>;
  /** Undoes everything since the last commit; never throws. */
  rollback(): Promise<void>;
}

/** Opens a unit of work; `write` begins a transaction. */
export type OpenUnit = (write: boolean) => Promise<UnitOfWork>;

/** As much of a `Database` as units of work need. Asked at each request, so that a database can be swapped. */
export interface UnitSource {
  readonly orm: { readonly em: { fork(): SqlEntityManager } };
}

/** Units of work on a database. */
export function unitsOf(database: UnitSource): OpenUnit {
  return async (write) => {
    const em = database.orm.em.fork();
    if (write) await em.begin();
    return {
      em,
      async commit() {
        if (em.isInTransaction()) await em.commit();
      },
      async rollback() {
        // A rollback can only fail with the connection, which takes the transaction along.
        if (em.isInTransaction()) await em.rollback().catch(() => undefined);
      },
    };
  };
}

/** Runs work that belongs to no request in a transaction of its own, committed when the work resolves. */
export function inUnitOf(openUnit: OpenUnit) {
  return async <T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T> => {
    const unit = await openUnit(true);
    try {
      const result = await work(unit.em);
      await unit.commit();
      return result;
    } finally {
      await unit.rollback();
    }
  };
}

/** Whether another transaction got in the way: run again, the same work sees what the other one did. */
export function isCollision(error: unknown): boolean {
  return error instanceof StaleReadError || isDatabaseCollision(error);
}
