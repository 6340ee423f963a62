import { loadOnce } from '../../load-once.ts';
import type { Incentives } from '../../ports/earn.ts';
import type { MerklOptions } from './merkl.ts';

/** Rewards of Merkl. What asks for them and checks them is imported on the first use. */
export function connectRewards(options: MerklOptions): Incentives {
  const load = loadOnce(async () => (await import('./merkl.ts')).merklRewards(options));
  return {
    rewards: async (caip2, address) =>
      options.distributors.has(caip2) ? (await load()).rewards(caip2, address) : undefined,
  };
}
