import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Services } from '../operation-context.ts';

/** What jobs work with. */
export interface JobContext {
  readonly services: Services;
  /** Runs `work` in a transaction of its own, committed when it resolves. */
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}
