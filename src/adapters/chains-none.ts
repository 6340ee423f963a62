import type { Chains } from '../ports/chains.ts';
import type { Prices } from '../ports/prices.ts';

/** For servers without configured chains: operations that need one return `not_supported`. */
export const noChains: Chains = { find: () => undefined };

/** For servers without a price source. */
export const noPrices: Prices = { inUsd: async () => new Map() };
