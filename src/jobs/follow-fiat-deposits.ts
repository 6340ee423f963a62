import {
  claimSentDeposits,
  completeDeposit,
  findArrival,
} from '../domain/money/fiat-deposits/complete-deposits.ts';
import {
  askAboutAccount,
  claimDueAccounts,
  keepAccount,
} from '../domain/money/fiat-deposits/keep-deposit-accounts.ts';
import {
  type FiatPosition,
  listFiatPositions,
  recordFiatDeposits,
} from '../domain/money/fiat-deposits/record-fiat-deposits.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Follows fiat deposits from the provider's history until they are in a block of our chain, and keeps deposit accounts
 * in step with the provider. Providers and chains are asked between transactions.
 */
export function followFiatDeposits({ services, inUnit }: JobContext): Job {
  const { clock, log, ids, vault, fiatProviders } = services;

  const readHistory = async (position: FiatPosition): Promise<boolean> => {
    const { provider, environment, after } = position;
    const page = await fiatProviders.find(provider, environment)?.depositsAfter(after);
    if (page === undefined || (page.reports.length === 0 && page.cursor === after)) return false;
    const nowMs = clock.now();
    await inUnit((em) => recordFiatDeposits({ em, ids, nowMs }, { ...position, page }));
    return page.hasMore;
  };

  const keepAccounts = async (): Promise<boolean> => {
    const nowMs = clock.now();
    const due = await inUnit((em) => claimDueAccounts(em, nowMs, BATCH));
    for (const account of due) {
      await attempt({ account: account.id }, async () => {
        const said = await askAboutAccount(services, account);
        if (said !== undefined) await inUnit((em) => keepAccount({ em, vault }, account.id, said));
        return false;
      });
    }
    return due.length === BATCH;
  };

  const complete = async (): Promise<boolean> => {
    const nowMs = clock.now();
    const due = await inUnit((em) => claimSentDeposits(em, nowMs, BATCH));
    for (const sent of due) {
      await attempt({ deposit: sent.id }, async () => {
        const rawAmount = await findArrival(services, sent);
        if (rawAmount !== undefined)
          await inUnit((em) => completeDeposit({ em, ids, nowMs }, sent, rawAmount));
        return false;
      });
    }
    return due.length === BATCH;
  };

  const attempt = async (about: object, work: () => Promise<boolean>): Promise<boolean> => {
    try {
      return await work();
    } catch (err) {
      log.warn({ err, ...about }, 'fiat deposits could not be followed; it is tried again');
      return false;
    }
  };

  return {
    name: 'follow-fiat-deposits',
    everyMs: EVERY_MS,
    async run() {
      let hasMore = await keepAccounts();
      for (const position of await inUnit(listFiatPositions)) {
        const { provider } = position;
        hasMore = (await attempt({ provider }, () => readHistory(position))) || hasMore;
      }
      return (await complete()) || hasMore;
    },
  };
}
