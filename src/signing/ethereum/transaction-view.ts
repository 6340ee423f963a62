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
  /** One call, or several in a Tempo batch; `to` is undefined for a contract creation. */
  readonly calls: readonly {
    readonly to: string | undefined;
    readonly value: bigint;
    readonly data: string;
  }[];
  readonly authorizations: readonly {
    readonly contract: string;
    readonly chainId: number;
    readonly nonce: bigint;
    /** The authority's signature as 0x hex of r || s || parity, or the bytes of a Tempo signature. */
    readonly signature: string;
  }[];
  readonly accessList: readonly { readonly address: string; readonly storageKeys: readonly string[] }[];
  /** 0x hex of r || s || parity, or the bytes of a Tempo signature; undefined while unsigned. */
  readonly signature: string | undefined;
  /** Set for Tempo transactions only. */
  readonly tempo:
    | {
        readonly feeToken: string | undefined;
        readonly isFeePayerSigned: boolean;
        /** 0x hex of r || s || parity. */
        readonly feePayerSignature: string | undefined;
        readonly nonceKey: bigint;
        /** Unix seconds. */
        readonly validAfter: number | undefined;
        /** Unix seconds. */
        readonly validBefore: number | undefined;
        readonly accessListLength: number;
      }
    | undefined;
}
