import type { CardIssuers, Custodians } from '../ports/cards.ts';
import type { Chains, Prices } from '../ports/chains.ts';
import type { FiatProviders } from '../ports/fiat.ts';

/** For servers without configured chains: operations that need one return `not_supported`. */
export const noChains: Chains = { find: () => undefined };

/** For servers without a price source. */
export const noPrices: Prices = { inUsd: async () => new Map() };

/** For servers without a custodian: custodial wallets are not supported. */
export const noCustodians: Custodians = { find: () => undefined };

/** For servers without a provider: fiat operations are not supported. */
export const noFiatProviders: FiatProviders = { find: () => undefined };

/** For servers without an issuer: cards are not supported. */
export const noCardIssuers: CardIssuers = { find: () => undefined };
