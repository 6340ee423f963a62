import {
  claimDueCustomers,
  pollCustomer,
  storeClaimed,
} from '../domain/money/fiat-customers/customer-snapshot.ts';
import type { FiatPlace } from '../ports/fiat.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Creates the job that polls providers about customers that are due, each provider independently of the others. Polling
 * alone is sufficient; notifications of providers only make it faster.
 */
export function followFiatCustomers({ services, inUnit }: JobContext): Job {
  const { clock, log, processId } = services;
  const report = outagesIn(log, 'customers could not be asked about; it is tried again');

  return jobApart({
    name: 'follow-fiat-customers',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    batch: BATCH,
    subjectOf,
    claim(subjects, limit) {
      const claimant = { owner: processId, nowMs: clock.now() };
      const busy = subjects.map((subject) => JSON.parse(subject) as FiatPlace);
      return inUnit((em) => claimDueCustomers(em, claimant, { busy, limit }));
    },
    async work(due) {
      const nowMs = clock.now();
      await Promise.all(
        due.map(async (known) => {
          const snapshot = await pollCustomer(services, known).catch((err: unknown) => {
            report(subjectOf(known), err);
            return undefined;
          });
          await inUnit((em, notes) => storeClaimed(services, { em, notes, nowMs }, { known, snapshot }));
        }),
      );
      return false;
    },
  });
}

function subjectOf({ provider, environment }: FiatPlace): string {
  return JSON.stringify({ provider, environment });
}
