import { claimUnreadSteps, storeEffects, type UnreadStep } from '../domain/money/wallet-actions/due-steps.ts';
import type { TransactionMovements } from '../ports/chains.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { fewAtOnce, type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;
/** The maximum number of concurrent units of work, however many chains respond at the same moment. */
const UNITS_AT_ONCE = 4;
/** How long after a failed call of the chain a step is read again. */
const RETRY_MS = 2000;

/**
 * Creates the job that reads the movements in the transactions of wallet actions whose outcome depends on them. Chains
 * are called between transactions, independently of one another.
 */
export function readEffects({ services, inUnit: openUnit }: JobContext): Job {
  const { chains, clock, log } = services;
  const inUnit = fewAtOnce(openUnit, UNITS_AT_ONCE);
  const report = outagesIn(log, 'the effects of steps could not be read; they are read again');
  const read = async ({ caip2, hash }: UnreadStep): Promise<TransactionMovements | undefined> => {
    try {
      const chain = chains.find(caip2);
      if (chain?.kind !== 'evm') throw new Error(`the chain ${caip2} is not configured`);
      return await chain.movementsOf(hash);
    } catch (err) {
      report(caip2, err);
      return undefined;
    }
  };

  return jobApart({
    name: 'read-effects',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    batch: BATCH,
    subjectOf: ({ caip2 }: UnreadStep) => caip2,
    claim(busy, limit) {
      const claimant = { owner: services.processId, nowMs: clock.now() };
      return openUnit((em) => claimUnreadSteps(em, claimant, { busy, limit }));
    },
    async work(due) {
      const nowMs = clock.now();
      await Promise.all(
        due.map(async (each) => {
          const movements = await read(each);
          const nextReadMs = movements === undefined ? nowMs + RETRY_MS : nowMs;
          await inUnit((em, notes) =>
            storeEffects({ em, notes }, each, { found: movements, nowMs: nextReadMs }),
          );
        }),
      );
      return false;
    },
  });
}
