import type { ConfiguredCeilings } from './requested-fees.ts';

/** The router of a chain. Addresses are 0x hex in any case. */
export interface RouterSettings {
  readonly router: string;
  /** The token that the router takes for the native asset; undefined if the operator has not named it. */
  readonly wrapped?: string | undefined;
}

/**
 * What the operator has configured of the transactions that a server builds, as far as a signer compares them: read by
 * the signer itself, and by chain.
 */
export interface BuildingSettings {
  /** What replaces the default ceilings of fees. */
  readonly feeCeilings: ConfiguredCeilings;
  readonly swapRouters: ReadonlyMap<string, RouterSettings>;
  /** The contracts that pay rewards. */
  readonly rewardDistributors: ReadonlyMap<string, string>;
}

/**
 * The contracts of settings, a text for each, in lower case: what a server has and its signer lacks is not signed for
 * wallets whose owner the signer verifies.
 */
export function namedContracts({
  swapRouters,
  rewardDistributors,
}: Pick<BuildingSettings, 'swapRouters' | 'rewardDistributors'>): string[] {
  const routers = [...swapRouters].flatMap(([caip2, { router, wrapped }]) => [
    `router ${caip2}=${router}`,
    ...(wrapped === undefined ? [] : [`wrapped asset ${caip2}=${wrapped}`]),
  ]);
  const distributors = [...rewardDistributors].map(
    ([caip2, address]) => `reward distributor ${caip2}=${address}`,
  );
  return [...routers, ...distributors].map((text) => text.toLowerCase());
}

/** What the owner has signed for does not say what may be signed, or the signer lacks a setting for it. */
export class NotComparableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotComparableError';
  }
}
