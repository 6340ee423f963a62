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

/** What the owner has signed for does not say what may be signed, or the signer lacks a setting for it. */
export class NotComparableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotComparableError';
  }
}
