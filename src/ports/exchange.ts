/** An asset where it is held. */
export interface ExchangeAsset {
  readonly caip2: string;
  /** The contract's name of the asset, `usdc` for instance. */
  readonly asset: string;
  /** Contract (EVM, TRON) or mint (Solana); null is the native asset. */
  readonly tokenAddress: string | null;
  readonly decimals: number;
}

/** What is to arrive as another asset or on another chain. */
export interface ExchangeOrder {
  /** `address` deposits, and has its deposit back when it cannot be exchanged. */
  readonly source: ExchangeAsset & { readonly address: string };
  readonly destination: ExchangeAsset & { readonly address: string };
  /** In base units of the side that `amountType` fixes. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  /** The app's share of the input, in hundredths of a percent; the exchange keeps it for the app. */
  readonly appFeeBps: number;
}

/** A part of what the exchange keeps of the input, by whom it is for. */
export interface ExchangeFee {
  readonly type: 'relayer' | 'developer';
  /** In base units of the source asset. */
  readonly rawAmount: bigint;
}

/** What the exchange does for a deposit that is in a block by `expiresAtSeconds`: exactly this, or it gives it back. */
export interface ExchangeQuote {
  readonly id: string;
  /** What must be deposited, to the unit. */
  readonly rawInput: bigint;
  /** What arrives. */
  readonly rawOutput: bigint;
  readonly fees: readonly ExchangeFee[];
  /** On the source chain. */
  readonly depositAddress: string;
  readonly expiresAtSeconds: number;
}

/** Why there is no quote: the pair, the amount or the app's fee is at fault. */
export interface ExchangeRefusal {
  readonly fault: 'pair' | 'amount' | 'fee';
  readonly message: string;
}

/** How far an exchange has come. */
export type ExchangeStatus =
  /** For the deposit, or for its own payment. */
  | { readonly kind: 'waiting' }
  /** `hash`: of the payment on the destination chain. */
  | { readonly kind: 'paid'; readonly hash: string }
  /** `hash`: of the repayment on the source chain. */
  | { readonly kind: 'refunded'; readonly hash: string; readonly reason: string };

/** Exchanges assets and bridges chains. A node or service that cannot be reached rejects. */
export interface Exchange {
  /** Reserves nothing; asked twice, it makes two quotes. */
  quote(order: ExchangeOrder): Promise<ExchangeQuote | ExchangeRefusal>;
  /**
   * Follows the exchange of one deposit. Safe to ask again at any time: a quote is honoured once.
   *
   * @param depositHash of the transaction on the source chain.
   */
  statusOf(quoteId: string, depositHash: string): Promise<ExchangeStatus>;
}
