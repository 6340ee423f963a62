import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Services } from '../operation-context.ts';

export interface JobContext {
  readonly services: Services;
  /** Runs `work` in its own transaction, committed when it resolves. */
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}
