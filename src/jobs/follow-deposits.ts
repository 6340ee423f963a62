import { readChainPosition, tellOfDeposits } from '../domain/money/transactions/tell-of-deposits.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 100;

/**
 * Reads what came in on every chain that keeps a list of its transfers, from where it was left, and tells the wallets
 * that received it. Chains are asked between transactions; a crash in between reads the same once more.
 */
export function followDeposits({ services, inUnit }: JobContext): Job {
  /** Whether there is more to be read at once. */
  const read = async (caip2: string): Promise<boolean> => {
    const chain = services.chains.find(caip2);
    if (chain?.transfersAfter === undefined) return false;
    const after = await inUnit((em) => readChainPosition(em, caip2));
    const transfers = await chain.transfersAfter(after, BATCH);
    if (transfers.length === 0) return false;
    const nowMs = services.clock.now();
    await inUnit((em) => tellOfDeposits({ ids: services.ids, em, nowMs }, { caip2, after, transfers }));
    return transfers.length === BATCH;
  };

  return {
    name: 'follow-deposits',
    everyMs: EVERY_MS,
    async run() {
      let hasMore = false;
      for (const caip2 of (await services.chains.listing?.()) ?? []) {
        try {
          hasMore = (await read(caip2)) || hasMore;
        } catch (err) {
          services.log.warn({ err, caip2 }, 'the transfers of a chain could not be read; it is tried again');
        }
      }
      return hasMore;
    },
  };
}
