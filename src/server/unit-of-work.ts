import type { SqlEntityManager } from '@mikro-orm/sql';
import { StaleReadError } from '../errors.ts';
import { createNotes, type UnitContext, type UnitNotes, type UnitWork } from '../ports/operation-context.ts';
import { isDatabaseCollision } from '../storage/database-errors.ts';
import { beginTransaction, commitTransaction } from '../storage/own-kysely.ts';

/** One fork of the EntityManager, inside a transaction when it may write. */
export interface UnitOfWork extends UnitContext {
  readonly watches: UnitWatch[];
  /**
   * Flushes and commits.
   *
   * @param last runs the last statement before the commit, with the option `isLast`: if no statement has begun the
   * transaction, none is needed.
   */
  commit(last?: LastStatement): Promise<void>;
  /** Rolls back everything since the last commit; never throws. */
  rollback(): Promise<void>;
}

type LastStatement = (unit: UnitContext) => Promise<void>;

/** Callbacks for the end of a unit of work, called in the order in which they were added. */
export interface UnitWatch {
  /** Called before the commit. If it throws, nothing is committed. */
  readonly committing?: () => void;
  /** Immediately after the commit. */
  readonly committed?: (notes: UnitNotes) => void;
  /** After a commit or a rollback. */
  readonly ended?: () => void;
}

/** Opens a unit of work. `write` begins a transaction. */
export type OpenUnit = (write: boolean) => Promise<UnitOfWork>;

/**
 * The part of `Database` that units of work need. It is read for each request, so that the database can be replaced.
 */
export interface UnitSource {
  readonly orm: { readonly em: { fork(): SqlEntityManager } };
}

/** Called for every transaction that has ended. */
export type ObserveTransaction = (result: 'committed' | 'rolled back', durationMs: number) => void;

/**
 * Units of work on a database. Each is a fork of its entity manager.
 *
 * HOT: without accessors. V8 keeps everything that an accessor of an object literal refers to until a full garbage
 * collection. With accessors, that included the entity manager of each request, which made a GET 15 % slower and the
 * heap three times as large.
 */
export function unitsOf(database: UnitSource, observe?: ObserveTransaction): OpenUnit {
  return async (write) => {
    const em = database.orm.em.fork();
    if (write) beginTransaction(em);
    const startedMs = write && observe !== undefined ? performance.now() : 0;
    const watches: UnitWatch[] = [];
    const notes = createNotes();
    return {
      em,
      notes,
      watches,
      async commit(last) {
        for (const { committing } of watches) committing?.();
        if (last !== undefined) {
          if (holdsEntities(em)) await em.flush();
          await last({ em, notes });
        }
        if (em.isInTransaction()) {
          await commit(em);
          observe?.('committed', performance.now() - startedMs);
        }
        notes.isOver = true;
        for (const { committed } of watches) committed?.(notes);
        for (const { ended } of watches) ended?.();
      },
      async rollback() {
        notes.isOver = true;
        if (em.isInTransaction()) {
          // A rollback fails only when the connection is lost, which ends the transaction as well.
          await em.rollback().catch(() => undefined);
          observe?.('rolled back', performance.now() - startedMs);
        }
        for (const { ended } of watches) ended?.();
      },
    };
  };
}

/** The same units of work, with one more watch. */
export function watching(openUnit: OpenUnit, watch: UnitWatch): OpenUnit {
  return async (write) => {
    const unit = await openUnit(write);
    unit.watches.push(watch);
    return unit;
  };
}

/** HOT: an empty flush takes as long as an indexed read, and `em.commit` flushes too. */
function commit(em: SqlEntityManager): Promise<void> {
  return holdsEntities(em) ? em.commit() : commitTransaction(em);
}

/** Whether a flush has anything to do. */
function holdsEntities(em: SqlEntityManager): boolean {
  const work = em.getUnitOfWork();
  const isEmpty = work.getIdentityMap()[Symbol.iterator]().next().done === true;
  return !isEmpty || work.getPersistStack().size > 0 || work.getRemoveStack().size > 0;
}

/** Runs work outside a request in its own transaction, which is committed when the work resolves. */
export function inUnitOf(openUnit: OpenUnit) {
  return async <T>(work: UnitWork<T>): Promise<T> => {
    const unit = await openUnit(true);
    try {
      const result = await work(unit.em, unit.notes);
      await unit.commit();
      return result;
    } finally {
      await unit.rollback();
    }
  };
}

/** Whether the error is a collision with another transaction. Running the work again can then succeed. */
export function isCollision(error: unknown): boolean {
  return error instanceof StaleReadError || isDatabaseCollision(error);
}
