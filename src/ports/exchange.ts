export interface ExchangeAsset {
  readonly caip2: string;
  /** The name of the asset in the API, for example `usdc`. */
  readonly asset: string;
  /** The smart contract (EVM, TRON) or mint (Solana); null for the native asset. */
  readonly tokenAddress: string | null;
  readonly decimals: number;
}

/** A swap to another asset or another chain. */
export interface ExchangeOrder {
  /** The asset to deposit. `address` makes the deposit, and receives the refund if the exchange fails. */
  readonly source: ExchangeAsset & { readonly address: string };
  readonly destination: ExchangeAsset & { readonly address: string };
  /** The amount of the input or output, depending on `amountType`, in base units. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  /** The app's fee in basis points of the input. The exchange keeps it for the app. */
  readonly appFeeBps: number;
}

/** A fee that the exchange deducts from the input, by recipient. */
interface ExchangeFee {
  readonly type: 'relayer' | 'developer';
  /** In base units of the source asset. */
  readonly rawAmount: bigint;
}

/**
 * The terms for a deposit that a block includes by `expiresAtSeconds`. The exchange either pays exactly this amount or
 * refunds the deposit.
 */
export interface ExchangeQuote {
  readonly id: string;
  /** The exact amount to deposit. */
  readonly rawInput: bigint;
  /** The amount that the recipient receives. */
  readonly rawOutput: bigint;
  readonly fees: readonly ExchangeFee[];
  /** The address on the source chain to which the deposit is sent. */
  readonly depositAddress: string;
  readonly expiresAtSeconds: number;
}

/** Why the exchange gives no quote. */
export interface ExchangeRefusal {
  readonly fault: 'pair' | 'amount' | 'fee';
  readonly message: string;
}

/** The progress of an exchange. */
export type ExchangeStatus =
  /** The exchange waits for the deposit to be included, or for the payment to be sent. */
  | { readonly kind: 'waiting' }
  /** `hash` is the hash of the payment on the destination chain. */
  | { readonly kind: 'paid'; readonly hash: string }
  /** `hash` is the hash of the refund on the source chain. */
  | { readonly kind: 'refunded'; readonly hash: string; readonly reason: string };

/** Swaps assets and bridges chains. Methods reject when the service cannot be reached. */
export interface Exchange {
  /** Returns a new quote. It reserves nothing. */
  quote(order: ExchangeOrder): Promise<ExchangeQuote | ExchangeRefusal>;
  /**
   * Reports the progress of one deposit. Repeated calls are safe, because a quote is executed only once.
   *
   * @param depositHash the hash of the transaction on the source chain.
   */
  statusOf(quoteId: string, depositHash: string): Promise<ExchangeStatus>;
}
