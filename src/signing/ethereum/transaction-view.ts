/** A decoded EVM transaction. Addresses and data are lower-case 0x hex, amounts wei. */
export interface EthereumTransactionView {
  readonly type: 0 | 1 | 2 | 4 | 118;
  /** Undefined for a legacy transaction that is valid on every chain. */
  readonly chainId: number | undefined;
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  readonly gasPrice: bigint | undefined;
  readonly maxFeePerGas: bigint | undefined;
  readonly maxPriorityFeePerGas: bigint | undefined;
  /** One, or several in a Tempo batch; `to` is undefined where a contract is created. */
  readonly calls: readonly {
    readonly to: string | undefined;
    readonly value: bigint;
    readonly data: string;
  }[];
  readonly authorizations: readonly {
    readonly contract: string;
    readonly chainId: number;
    readonly nonce: bigint;
  }[];
  /** What only Tempo transactions have. */
  readonly tempo:
    | {
        readonly feeToken: string | undefined;
        readonly isFeePayerSigned: boolean;
        readonly nonceKey: bigint;
        /** Unix seconds. */
        readonly validAfter: number | undefined;
        /** Unix seconds. */
        readonly validBefore: number | undefined;
        readonly accessListLength: number;
      }
    | undefined;
}
