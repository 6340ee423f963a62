import { loadOnce } from '../../load-once.ts';
import type { SwapRoutes } from '../../ports/swap-routes.ts';
import type { RouterOptions } from './uniswap-v2.ts';

/** Routes over the routers of chains. What encodes and decodes their calls is imported on the first swap. */
export function connectRouters(options: RouterOptions): SwapRoutes {
  const load = loadOnce(async () => (await import('./uniswap-v2.ts')).routersOnChain(options));
  return {
    supports: (caip2) => options.routerOf(caip2) !== undefined,
    route: async (order) => (await load()).route(order),
  };
}
