/** What a Spark network's operators answer. Changes go out as the network's `broadcast` (`signSparkOperation`). */
export interface SparkOperators {
  holdings(address: string): Promise<SparkHoldings>;
  /** What a deposit on layer 1 is worth; undefined where none of that transaction has reached the address. */
  quoteDeposit(deposit: SparkDeposit): Promise<SparkDepositQuote | undefined>;
  /** What a withdrawal costs. With `quoteId` that quote again; undefined where it was not given for this, or is over. */
  quoteWithdrawal(withdrawal: SparkWithdrawal): Promise<SparkWithdrawalQuote | undefined>;
  /** A BOLT 11 invoice of the operators' node that pays an identity key. The payment hash is hex. */
  makeInvoice(request: SparkInvoiceRequest): Promise<{ readonly text: string; readonly paymentHash: string }>;
  /** An invoice of theirs as it stands; undefined for any other text. */
  readInvoice(text: string): Promise<SparkInvoice | undefined>;
  /** Sats that a payment over Lightning costs beside its amount. */
  quotePayment(sats: bigint): Promise<bigint>;
}

export interface SparkInvoiceRequest {
  /** Drawn for this invoice: no two have the same payment hash. */
  readonly id: string;
  /** Compressed, hex. */
  readonly receiverKey: string;
  /** Undefined lets the payer choose. */
  readonly sats: bigint | undefined;
  /** The hash is the SHA-256 of a longer text, hex. */
  readonly description: { readonly text: string } | { readonly hash: string };
  readonly createdAtSeconds: number;
  readonly expirySeconds: number;
  /** Whether it can be paid over Spark as well. */
  readonly hasSparkAddress: boolean;
}

export interface SparkInvoice extends Pick<SparkInvoiceRequest, 'receiverKey' | 'sats' | 'hasSparkAddress'> {
  /** Hex. */
  readonly paymentHash: string;
  readonly expiresAtMs: number;
  readonly isPaid: boolean;
}

export interface SparkHoldings {
  readonly sats: bigint;
  readonly tokens: readonly {
    /** Bech32m, `btkn1…`. */
    readonly identifier: string;
    readonly rawAmount: bigint;
    readonly decimals: number;
    readonly symbol: string;
    /** Compressed key of the issuer, hex. */
    readonly issuerKey: string;
  }[];
}

export interface SparkDeposit {
  /** Where it went. */
  readonly depositAddress: string;
  readonly transactionId: string;
  readonly outputIndex: number | undefined;
}

export interface SparkDepositQuote {
  readonly creditSats: bigint;
  readonly feeSats: bigint;
  readonly outputIndex: number;
  /** Hex DER; the same for the same quote. */
  readonly signature: string;
}

export interface SparkWithdrawal {
  readonly onchainAddress: string;
  readonly sats: bigint;
  readonly quoteId?: string | undefined;
}

export type SparkSpeed = 'FAST' | 'MEDIUM' | 'SLOW';

export interface SparkWithdrawalQuote {
  readonly id: string;
  readonly expiresAtMs: number;
  readonly fees: Readonly<
    Record<SparkSpeed, { readonly operatorSats: bigint; readonly networkSats: bigint }>
  >;
}
