import {
  advanceExchange,
  claimDueExchanges,
  type DueExchange,
} from '../domain/money/wallet-actions/follow-exchanges.ts';
import type { ExchangeStatus } from '../ports/exchange.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Follows exchanges from the deposit until they have paid out or refunded. The exchange is called between
 * transactions, and pays a quote only once.
 */
export function followExchanges({ services, inUnit }: JobContext): Job {
  const { exchange, clock, log } = services;

  const ask = async (due: DueExchange): Promise<ExchangeStatus> => {
    try {
      return (await exchange?.statusOf(due.quoteId, due.depositHash)) ?? { kind: 'waiting' };
    } catch (err) {
      log.warn({ err, action: due.actionId }, 'an exchange could not be followed; it is tried again');
      return { kind: 'waiting' };
    }
  };

  return {
    name: 'follow-exchanges',
    everyMs: EVERY_MS,
    async run() {
      if (exchange === undefined) return false;
      const nowMs = clock.now();
      const due = await inUnit((em) => claimDueExchanges(em, nowMs, BATCH));
      const ended = await Promise.all(
        due.map(async (each) => {
          const status = await ask(each);
          return inUnit((em) => advanceExchange(em, each, { status, nowMs }));
        }),
      );
      return due.length === BATCH || ended.includes(true);
    },
  };
}
