import { readChainPosition, recordDeposits } from '../domain/money/transactions/record-deposits.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 100;

/**
 * Reads new transfers on every chain that lists them, from the last stored position, and records the deposits of
 * wallets. Chains are called between transactions; after a crash the same transfers are read again.
 */
export function followDeposits({ services, inUnit }: JobContext): Job {
  /** Whether more transfers can be read right away. */
  const read = async (caip2: string): Promise<boolean> => {
    const chain = services.chains.find(caip2);
    if (chain?.transfersAfter === undefined) return false;
    const after = await inUnit((em) => readChainPosition(em, caip2));
    const transfers = await chain.transfersAfter(after, BATCH);
    if (transfers.length === 0) return false;
    const nowMs = services.clock.now();
    await inUnit((em) => recordDeposits({ ids: services.ids, em, nowMs }, { caip2, after, transfers }));
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
