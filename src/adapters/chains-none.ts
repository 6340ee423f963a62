import type { Chains, Prices } from '../services.ts';

/** A server that was told of no chain: what needs one answers that it is not supported. */
export const noChains: Chains = { find: () => undefined };

/** Without a source of prices nothing has a price. */
export const noPrices: Prices = { inUsd: async () => new Map() };
