import type { Chains } from '../ports/chains.ts';
import type { Prices } from '../ports/prices.ts';

/** A server that was told of no chain: what needs one answers that it is not supported. */
export const noChains: Chains = { find: () => undefined };

/** Without a source of prices nothing has a price. */
export const noPrices: Prices = { inUsd: async () => new Map() };
