import type { SqlEntityManager } from '@mikro-orm/sql';
import { claimDueExecutions } from '../domain/money/automation-runs/claim-executions.ts';
import { runExecution } from '../domain/money/automation-runs/run-execution.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 10;

/** Runs executions of automations. Chains and services are asked between transactions. */
export function runAutomations({
  services,
  inUnit,
  openReader,
}: JobContext & {
  /** Reads outside any transaction. */
  readonly openReader: () => Promise<SqlEntityManager>;
}): Job {
  return {
    name: 'run-automations',
    everyMs: EVERY_MS,
    async run() {
      const nowMs = services.clock.now();
      const claimed = await inUnit((em) =>
        claimDueExecutions(em, { owner: services.processId, nowMs }, BATCH),
      );
      const em = await openReader();
      await Promise.all(claimed.map((execution) => runExecution({ services, inUnit, em }, execution)));
      return claimed.length === BATCH;
    },
  };
}
