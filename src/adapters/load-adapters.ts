import { loadOnce } from '../engine/load-once.ts';
import type { Incentives, SwapRoutes } from '../ports/chains.ts';
import type { MerklOptions } from './rewards.ts';
import type { RouterOptions } from './swap-routers.ts';

/** Rewards of Merkl. What asks for them and checks them is imported on the first use. */
export function connectRewards(options: MerklOptions): Incentives {
  const load = loadOnce(async () => (await import('./rewards.ts')).merklRewards(options));
  return {
    rewards: async (caip2, address) =>
      options.distributors.has(caip2) ? (await load()).rewards(caip2, address) : undefined,
  };
}

/** Routes over the routers of chains. What encodes and decodes their calls is imported on the first swap. */
export function connectRouters(options: RouterOptions): SwapRoutes {
  const load = loadOnce(async () => (await import('./swap-routers.ts')).routersOnChain(options));
  return {
    supports: (caip2) => options.routerOf(caip2) !== undefined,
    route: async (order) => (await load()).route(order),
  };
}
