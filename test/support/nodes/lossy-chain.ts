import type { AnyChain } from '../../../src/ports/chains.ts';

/** The fate of the next broadcasts: they arrive, or the request or its response is lost. */
export type Loss = 'nothing' | 'request' | 'answer';

/** Wraps a chain so that the requests or the responses of broadcasts may be lost. */
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
