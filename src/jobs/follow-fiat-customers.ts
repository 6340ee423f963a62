import {
  askAbout,
  claimDueCustomers,
  storeClaimed,
} from '../domain/money/fiat-customers/refresh-customer.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/** Asks providers about customers that are due. Polling alone suffices; notifications of providers only hurry it. */
export function followFiatCustomers({ services, inUnit }: JobContext): Job {
  return {
    name: 'follow-fiat-customers',
    everyMs: EVERY_MS,
    async run() {
      const nowMs = services.clock.now();
      const due = await inUnit((em) => claimDueCustomers(em, { owner: services.processId, nowMs }, BATCH));
      await Promise.all(
        due.map(async (known) => {
          const snapshot = await askAbout(services, known);
          await inUnit((em) => storeClaimed(services, { em, nowMs }, { known, snapshot }));
        }),
      );
      return due.length === BATCH;
    },
  };
}
