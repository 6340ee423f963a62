import {
  claimDueCards,
  type DueCard,
  reportToIssuer,
  settleCard,
} from '../domain/money/cards/update-card.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Creates the job that reports to issuers which cards end or are frozen because of a change of their user or wallet.
 * Issuers are called between transactions, each environment independently.
 */
export function keepCards({ services, inUnit }: JobContext): Job {
  const { clock, log } = services;
  const report = outagesIn(log, 'cards could not be changed at their issuer; it is tried again');

  const keep = async (due: DueCard): Promise<void> => {
    const { environment } = due.card;
    try {
      const reported = await reportToIssuer(services, due);
      if (reported !== undefined) await inUnit((em, notes) => settleCard({ em, notes }, due, reported));
    } catch (err) {
      report(environment, err);
    }
  };

  return jobApart({
    name: 'keep-cards',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    batch: BATCH,
    subjectOf: ({ card }: DueCard) => card.environment,
    claim: (busy, limit) => inUnit((em) => claimDueCards(em, clock.now(), { busy, limit })),
    async work(due) {
      await Promise.all(due.map(keep));
      return false;
    },
  });
}
