import type { AnyChain } from '../../../src/ports/chains.ts';

/** What becomes of the next broadcasts: they arrive, or the request or its answer is lost. */
export type Loss = 'nothing' | 'request' | 'answer';

/** The chain, except that broadcasts may be lost on the way there or back. */
export function withLoss(chain: AnyChain | undefined, lossNow: () => Loss): AnyChain | undefined {
  if (chain === undefined) return undefined;
  return {
    ...chain,
    async broadcast(bytes) {
      if (lossNow() === 'request') throw new Error('connect ECONNREFUSED');
      const outcome = await chain.broadcast(bytes);
      if (lossNow() === 'answer') throw new Error('read ECONNRESET');
      return outcome;
    },
  };
}
