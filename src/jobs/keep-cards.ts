import { claimDueCards, reportToIssuer, settleCard } from '../domain/money/cards/keep-cards.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Reports to issuers which cards end or freeze because their user or wallet did. Issuers are called between transactions.
 */
export function keepCards({ services, inUnit }: JobContext): Job {
  const { clock, log } = services;
  return {
    name: 'keep-cards',
    everyMs: EVERY_MS,
    async run() {
      const nowMs = clock.now();
      const claimed = await inUnit((em) => claimDueCards(em, nowMs, BATCH));
      for (const due of claimed) {
        try {
          const reported = await reportToIssuer(services, due);
          if (reported !== undefined) await inUnit((em) => settleCard(em, due, reported));
        } catch (err) {
          log.warn(
            { err, card: due.card.id },
            'a card could not be changed at its issuer; it is tried again',
          );
        }
      }
      return claimed.length === BATCH;
    },
  };
}
