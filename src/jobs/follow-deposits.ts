import {
  claimTransfers,
  recordDeposits,
  releaseTransfers,
  watchedAddresses,
} from '../domain/money/transactions/record-funds.ts';
import type { AnyChain } from '../ports/chains.ts';
import { type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 100;

type Followed = AnyChain & Required<Pick<AnyChain, 'transfersAfter'>>;

/**
 * Creates the job that reads new transfers on every chain that lists them, from the last stored position, and records
 * the deposits of wallets. Chains are called between transactions, independently of one another. After a crash, the
 * same transfers are read again.
 */
export function followDeposits({ services, inUnit }: JobContext): Job {
  const report = outagesIn(services.log, 'the transfers of a chain could not be read; it is tried again');
  /**
   * The last positions that this process has read. They show only whether a claim is worthwhile, because another
   * process may have read further.
   */
  const positions = new Map<string, string | undefined>();
  const hasNews = async (chain: Followed): Promise<boolean> =>
    chain.transfersAwait === undefined ||
    !positions.has(chain.caip2) ||
    chain.transfersAwait(positions.get(chain.caip2));
  /** Reads a page of transfers. Returns whether more can be read immediately. */
  const read = async (chain: Followed): Promise<boolean> => {
    const { caip2, transferLeaseMs: leaseMs } = chain;
    if (!(await hasNews(chain))) return false;
    const claimant = { owner: services.processId, nowMs: services.clock.now() };
    const claim = await inUnit((em) => claimTransfers(em, { ...claimant, caip2, leaseMs }));
    if (claim === undefined) return false;
    try {
      const watched = watchedAddresses(inUnit);
      const { hasMore, ...page } = await chain.transfersAfter({ ...claim, limit: BATCH, watched });
      const isNew = page.position !== claim.after;
      const context = { ids: services.ids, nowMs: services.clock.now() };
      if (isNew)
        await inUnit((em, notes) => recordDeposits({ ...context, em, notes }, { caip2, ...claim, ...page }));
      else if (leaseMs !== undefined) await inUnit((em) => releaseTransfers(em, caip2, claimant.owner));
      positions.set(caip2, page.position);
      return hasMore;
    } catch (err) {
      if (leaseMs !== undefined) await inUnit((em) => releaseTransfers(em, caip2, claimant.owner));
      throw err;
    }
  };

  const tryRead = async (caip2: string): Promise<boolean> => {
    const chain = services.chains.find(caip2);
    if (!isFollowed(chain)) return false;
    try {
      return await read(chain);
    } catch (err) {
      report(caip2, err);
      return false;
    }
  };

  return jobApart({
    name: 'follow-deposits',
    everyMs: EVERY_MS,
    batch: Number.POSITIVE_INFINITY,
    subjectOf: (caip2: string) => caip2,
    async claim(busy) {
      return ((await services.chains.listing?.()) ?? []).filter((caip2) => !busy.includes(caip2));
    },
    work: async ([caip2]) => caip2 !== undefined && tryRead(caip2),
  });
}

function isFollowed(chain: AnyChain | undefined): chain is Followed {
  return chain?.transfersAfter !== undefined;
}
