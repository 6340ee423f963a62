import {
  claimSentDeposits,
  completeDeposit,
  findArrival,
  type SentDeposit,
} from '../domain/money/fiat-deposits/complete-deposits.ts';
import type { StoredFiatDepositAccount } from '../domain/money/fiat-deposits/fiat-deposit.entity.ts';
import {
  claimDueAccounts,
  keepAccount,
  pollFiatDepositAccount,
} from '../domain/money/fiat-deposits/fiat-deposit-account.ts';
import {
  type FiatPosition,
  listFiatPositions,
  recordFiatDeposits,
} from '../domain/money/fiat-deposits/record-fiat-deposits.ts';
import type { FiatPlace } from '../ports/fiat.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/** What to poll next: a provider about an account or its history, or a chain about the transaction of a deposit. */
type Due =
  | { readonly of: 'account'; readonly account: StoredFiatDepositAccount }
  | { readonly of: 'history'; readonly position: FiatPosition }
  | { readonly of: 'arrival'; readonly sent: SentDeposit };

/** The external system that is polled. */
type Subject =
  | ({ readonly of: 'account' } & FiatPlace)
  | ({ readonly of: 'history' } & FiatPlace)
  | { readonly of: 'arrival'; readonly chain: string };

/**
 * Creates the job that follows fiat deposits from the provider's history until a block of a supported chain includes
 * them, and synchronizes deposit accounts with the provider. Providers and chains are polled between transactions,
 * independently of one another.
 */
export function followFiatDeposits({ services, inUnit }: JobContext): Job {
  const { clock, log, ids, keyStore, fiatProviders } = services;
  const report = outagesIn(log, 'fiat deposits could not be followed; it is tried again');

  const readHistory = async (position: FiatPosition): Promise<boolean> => {
    const { provider, environment, after } = position;
    const page = await fiatProviders.find(provider, environment)?.depositsAfter(after);
    if (page === undefined || (page.reports.length === 0 && page.cursor === after)) return false;
    const nowMs = clock.now();
    await inUnit((em, notes) => recordFiatDeposits({ em, notes, ids, nowMs }, { ...position, page }));
    // After new reports, run again immediately, to check the transactions that they name on their chains.
    return page.hasMore || page.reports.length > 0;
  };

  const askAccount = async (account: StoredFiatDepositAccount): Promise<false> => {
    const said = await pollFiatDepositAccount(services, account);
    if (said !== undefined) await inUnit((em) => keepAccount({ em, keyStore }, account.id, said));
    return false;
  };

  const complete = async (sent: SentDeposit): Promise<false> => {
    const nowMs = clock.now();
    const rawAmount = await findArrival(services, sent);
    if (rawAmount !== undefined)
      await inUnit((em, notes) => completeDeposit({ em, notes, ids, nowMs }, sent, rawAmount));
    return false;
  };

  const ask = async (due: Due): Promise<boolean> => {
    try {
      if (due.of === 'account') return await askAccount(due.account);
      return await (due.of === 'history' ? readHistory(due.position) : complete(due.sent));
    } catch (err) {
      report(subjectOf(due), err);
      return false;
    }
  };

  return jobApart<Due>({
    name: 'follow-fiat-deposits',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    // At most `BATCH` rows of each kind are claimed, and one page of a history is read.
    batch: Number.POSITIVE_INFINITY,
    subjectOf,
    async claim(subjects) {
      const nowMs = clock.now();
      const { accounts, histories, chains } = busyOf(subjects);
      const due = await inUnit((em) => claimDueAccounts(em, nowMs, { busy: accounts, limit: BATCH }));
      const positions = await inUnit(listFiatPositions);
      const sent = await inUnit((em) => claimSentDeposits(em, nowMs, { busy: chains, limit: BATCH }));
      return [
        ...due.map((account) => ({ of: 'account', account }) as const),
        ...positions
          .filter((position) => !histories.some((busy) => isSamePlace(busy, position)))
          .map((position) => ({ of: 'history', position }) as const),
        ...sent.map((each) => ({ of: 'arrival', sent: each }) as const),
      ];
    },
    async work(rows) {
      const found = await Promise.all(rows.map(ask));
      return found.includes(true) || rows.length === BATCH;
    },
  });
}

function subjectOf(due: Due): string {
  if (due.of === 'arrival') return JSON.stringify({ of: due.of, chain: due.sent.chain });
  const { provider, environment } = due.of === 'account' ? due.account : due.position;
  return JSON.stringify({ of: due.of, provider, environment });
}

function busyOf(subjects: readonly string[]) {
  const all = subjects.map((subject) => JSON.parse(subject) as Subject);
  return {
    accounts: all.filter((subject) => subject.of === 'account'),
    histories: all.filter((subject) => subject.of === 'history'),
    chains: all.filter((subject) => subject.of === 'arrival').map(({ chain }) => chain),
  };
}

function isSamePlace(left: FiatPlace, right: FiatPlace): boolean {
  return left.provider === right.provider && left.environment === right.environment;
}
