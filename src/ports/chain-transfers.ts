/** A transfer of one asset on a chain, from any sender. */
export interface ChainTransfer {
  readonly hash: string;
  readonly sender: string;
  readonly recipient: string;
  /** Contract (EVM) or mint (Solana); null is the native asset. */
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  readonly blockNumber: bigint;
  readonly blockTimestampSeconds: number;
  /** Where the chain contains it; used as a page cursor. */
  readonly position: string;
  /** Identifies the transfer, also if a reorganization puts its transaction into another block. */
  readonly key: string;
}

/** Asks for the next transfers on a chain, from any sender. */
export interface TransferReading {
  /** `TransferPage.position` of the page before; undefined begins. */
  readonly after: string | undefined;
  /** The most transfers to return. */
  readonly limit: number;
  readonly watched: WatchedAddresses;
}

/** The addresses whose transfers are of interest, in the format in which wallets store them. */
export interface WatchedAddresses {
  /** Those of these addresses that are watched. */
  among(addresses: readonly string[]): Promise<ReadonlySet<string>>;
  /** For Solana: the next watched addresses in ascending order; undefined starts with the first. */
  nextOnSolana(address: string | undefined, limit: number): Promise<readonly string[]>;
}

export interface TransferPage {
  /** Oldest first; may contain transfers to addresses that are not watched. */
  readonly transfers: readonly ChainTransfer[];
  /** Where the next page begins; undefined if the chain has none yet. */
  readonly position: string | undefined;
  /** Whether more can be read right away. */
  readonly hasMore: boolean;
}

/** Selects transfers from or to an address. */
export interface TransferQuery {
  readonly address: string;
  readonly tokenAddresses: readonly (string | null)[];
  /** Only transfers of this transaction. */
  readonly hash?: string | undefined;
  /** Only transfers before this position. */
  readonly beforePosition: string | undefined;
  readonly limit: number;
}
