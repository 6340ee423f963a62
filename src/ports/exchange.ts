/** An asset on a chain. */
export interface ExchangeAsset {
  readonly caip2: string;
  /** The API contract's name of the asset, e.g. `usdc`. */
  readonly asset: string;
  /** Contract (EVM, TRON) or mint (Solana); null is the native asset. */
  readonly tokenAddress: string | null;
  readonly decimals: number;
}

/** A swap into another asset or onto another chain. */
export interface ExchangeOrder {
  /** `address` deposits the input and receives the refund when the exchange fails. */
  readonly source: ExchangeAsset & { readonly address: string };
  readonly destination: ExchangeAsset & { readonly address: string };
  /** In base units of the input or output, depending on `amountType`. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  /** The app's fee in basis points of the input; the exchange holds it for the app. */
  readonly appFeeBps: number;
}

/** A fee that the exchange deducts from the input, by recipient. */
interface ExchangeFee {
  readonly type: 'relayer' | 'developer';
  /** In base units of the source asset. */
  readonly rawAmount: bigint;
}

/** The terms for a deposit included by `expiresAtSeconds`: the exchange pays exactly this or refunds the deposit. */
export interface ExchangeQuote {
  readonly id: string;
  /** The exact amount to deposit. */
  readonly rawInput: bigint;
  /** The amount that the recipient receives. */
  readonly rawOutput: bigint;
  readonly fees: readonly ExchangeFee[];
  /** On the source chain. */
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
  /** For the deposit to be included, or for the payment to be sent. */
  | { readonly kind: 'waiting' }
  /** `hash`: of the payment on the destination chain. */
  | { readonly kind: 'paid'; readonly hash: string }
  /** `hash`: of the refund on the source chain. */
  | { readonly kind: 'refunded'; readonly hash: string; readonly reason: string };

/** Swaps assets and bridges chains. Methods reject when the service cannot be reached. */
export interface Exchange {
  /** Reserves nothing; each call returns a new quote. */
  quote(order: ExchangeOrder): Promise<ExchangeQuote | ExchangeRefusal>;
  /**
   * Reports the progress of one deposit. Safe to call repeatedly: a quote is executed once.
   *
   * @param depositHash of the transaction on the source chain.
   */
  statusOf(quoteId: string, depositHash: string): Promise<ExchangeStatus>;
}
