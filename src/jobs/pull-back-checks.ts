import { pullBackChecks } from '../domain/money/transactions/claim-transactions.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 15_000;

/** Creates the job that makes work due whose due time is so far ahead that only a wrong clock can have set it. */
export function pullBack({ services, inUnit }: JobContext): Job {
  return {
    name: 'pull-back-checks',
    everyMs: EVERY_MS,
    async run() {
      const found = await inUnit((em) => pullBackChecks(em, services.clock.now()));
      if (found > 0)
        services.log.warn(
          { rows: found },
          'the clock was set back; work scheduled by the wrong clock is due now',
        );
      return false;
    },
  };
}
