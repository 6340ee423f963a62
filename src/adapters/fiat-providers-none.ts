import type { CardIssuers } from '../ports/card-issuers.ts';
import type { FiatProviders } from '../ports/fiat-providers.ts';

/** For servers without a provider: fiat operations are not supported. */
export const noFiatProviders: FiatProviders = { find: () => undefined };

/** For servers without an issuer: cards are not supported. */
export const noCardIssuers: CardIssuers = { find: () => undefined };
