/** Answers queries about a Spark network. Signed operations (`signSparkOperation`) go through `broadcast`. */
export interface SparkOperators {
  holdings(address: string): Promise<SparkHoldings>;
  /** Returns the value of a layer 1 deposit. Undefined when the transaction has no output to the address. */
  quoteDeposit(deposit: SparkDeposit): Promise<SparkDepositQuote | undefined>;
  /**
   * Returns the fees of a withdrawal. With `quoteId`, returns that earlier quote; undefined if it is for another
   * withdrawal or has expired.
   */
  quoteWithdrawal(withdrawal: SparkWithdrawal): Promise<SparkWithdrawalQuote | undefined>;
  /** Creates a BOLT 11 invoice that the operators' node receives for an identity key. The payment hash is in hex. */
  makeInvoice(request: SparkInvoiceRequest): Promise<{ readonly text: string; readonly paymentHash: string }>;
  /** Returns the current state of an invoice of the operators' node. Undefined for any other string. */
  readInvoice(text: string): Promise<SparkInvoice | undefined>;
  /** Returns the fee of a Lightning payment in sats. */
  quotePayment(sats: bigint): Promise<bigint>;
}

export interface SparkInvoiceRequest {
  /** A random value that makes the payment hash unique. */
  readonly id: string;
  /** The compressed key in hex. */
  readonly receiverKey: string;
  /** The amount in satoshis. Undefined if the payer chooses it. */
  readonly sats: bigint | undefined;
  /** Either the text, or the SHA-256 of a longer text, in hex. */
  readonly description: { readonly text: string } | { readonly hash: string };
  readonly createdAtSeconds: number;
  readonly expirySeconds: number;
  /** Whether the invoice can also be paid over Spark. */
  readonly hasSparkAddress: boolean;
}

export interface SparkInvoice extends Pick<SparkInvoiceRequest, 'receiverKey' | 'sats' | 'hasSparkAddress'> {
  /** The payment hash in hex. */
  readonly paymentHash: string;
  readonly expiresAtMs: number;
  readonly isPaid: boolean;
}

interface SparkHoldings {
  readonly sats: bigint;
  readonly tokens: readonly {
    /** The identifier in Bech32m, `btkn1…`. */
    readonly identifier: string;
    readonly rawAmount: bigint;
    readonly decimals: number;
    readonly symbol: string;
    /** Compressed key of the issuer, hex. */
    readonly issuerKey: string;
  }[];
}

export interface SparkDeposit {
  readonly depositAddress: string;
  readonly transactionId: string;
  readonly outputIndex: number | undefined;
}

export interface SparkDepositQuote {
  readonly creditSats: bigint;
  readonly feeSats: bigint;
  readonly outputIndex: number;
  /** The signature as DER in hex. The same quote always has the same signature. */
  readonly signature: string;
}

export interface SparkWithdrawal {
  readonly onchainAddress: string;
  readonly sats: bigint;
  readonly quoteId?: string | undefined;
}

type SparkSpeed = 'FAST' | 'MEDIUM' | 'SLOW';

export interface SparkWithdrawalQuote {
  readonly id: string;
  readonly expiresAtMs: number;
  readonly fees: Readonly<
    Record<SparkSpeed, { readonly operatorSats: bigint; readonly networkSats: bigint }>
  >;
}
