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
  /** Increases with every transfer on the chain; used as a page cursor. */
  readonly position: string;
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
