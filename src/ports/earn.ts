/** A reward of an account in one token. Amounts in base units. */
interface IncentiveReward {
  readonly tokenAddress: string;
  readonly symbol: string;
  readonly decimals: number;
  /** What the account was given in all, including what it has claimed. */
  readonly rawCumulative: bigint;
  readonly rawClaimed: bigint;
  /** The Merkle proof of the cumulative amount; 0x hex. */
  readonly proof: readonly string[];
}

/** The rewards of an account on one chain, and the contract that pays them. */
export interface IncentiveRewards {
  readonly distributor: string;
  readonly rewards: readonly IncentiveReward[];
}

/** The programs that reward deposits. */
export interface Incentives {
  /** Undefined for a chain without such a program. Rejects when the system cannot be reached. */
  rewards(caip2: string, address: string): Promise<IncentiveRewards | undefined>;
}

/** The annual yield of a vault in hundredths of a percent. */
export interface VaultRate {
  /** Before the app's fee. */
  readonly apyBps: number;
  /** The app's part of the yield. */
  readonly feeBps: number;
}

/** What vaults earn, which their contracts do not say. */
export interface VaultRates {
  /** Undefined for a vault whose rate is unknown. */
  rateOf(caip2: string, address: string): Promise<VaultRate | undefined>;
}
