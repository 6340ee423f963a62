import type { SqlEntityManager } from '@mikro-orm/sql';
import type { StoredExecution } from '../domain/access/automations/automation.entity.ts';
import { claimDueExecutions } from '../domain/money/automation-runs/executions.ts';
import { runExecution } from '../domain/money/automation-runs/run-execution.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 10;

/**
 * Creates the job that runs executions of automations. Chains and services are called between transactions, each chain
 * independently of the others.
 */
export function runAutomations({
  services,
  inUnit,
  openReader,
}: JobContext & {
  /** Opens a reader outside of any transaction. */
  readonly openReader: () => Promise<SqlEntityManager>;
}): Job {
  const report = outagesIn(services.log, 'executions could not be run; they are tried again');
  return jobApart({
    name: 'run-automations',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    batch: BATCH,
    subjectOf: ({ caip2 }: StoredExecution) => caip2,
    claim(busy, limit) {
      const claimant = { owner: services.processId, nowMs: services.clock.now() };
      return inUnit((em) => claimDueExecutions(em, claimant, { busy, limit }));
    },
    async work(claimed) {
      const em = await openReader();
      await Promise.all(
        claimed.map((execution) => runExecution({ services, inUnit, em, report }, execution)),
      );
      return false;
    },
  });
}
