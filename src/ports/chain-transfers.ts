/** A movement of one asset that a chain saw, of whoever sent it. */
export interface ChainTransfer {
  readonly hash: string;
  readonly sender: string;
  readonly recipient: string;
  /** Contract (EVM) or mint (Solana); null is the native asset. */
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  readonly blockNumber: bigint;
  readonly blockTimestampSeconds: number;
  /** Grows with every transfer on the chain; a page begins below a position. */
  readonly position: string;
}

/** Which of the transfers from or to an address are asked for. */
export interface TransferQuery {
  readonly address: string;
  readonly tokenAddresses: readonly (string | null)[];
  /** Only those of one transaction. */
  readonly hash?: string | undefined;
  /** Only transfers before this one. */
  readonly beforePosition: string | undefined;
  readonly limit: number;
}
