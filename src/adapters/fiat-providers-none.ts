import type { FiatProviders } from '../ports/fiat-providers.ts';

/** For servers without a provider: fiat operations are not supported. */
export const noFiatProviders: FiatProviders = { find: () => undefined };
