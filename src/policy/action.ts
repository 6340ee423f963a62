/** An account of a Solana instruction; one that sits behind an address lookup table cannot be known offline. */
export type SolanaAccount = string | { readonly behindLookupTable: true };

/** A decoded Solana instruction. `name` and `fields` only where its program's layout is known. */
export interface SolanaInstruction {
  readonly programId: SolanaAccount;
  readonly program: 'system' | 'token' | 'other';
  /** `Transfer`, `TransferChecked`, …; undefined for an instruction of a known program that has another layout. */
  readonly name: string | undefined;
  readonly fields: Readonly<Record<string, bigint | SolanaAccount>>;
}

/** One command of a Sui programmable transaction. `name` is undefined for a command we do not know. */
export interface SuiCommand {
  readonly name: 'TransferObjects' | 'SplitCoins' | 'MergeCoins' | undefined;
  /** TransferObjects: the receiver, when it is a pure address input. */
  readonly recipient?: string | undefined;
  /** TransferObjects: the sum of the amounts split off for it, when every one is a pure u64 input. */
  readonly amount?: bigint | undefined;
}

/** `to`, `value`, `chain_id` and calldata as they stand in the bytes to be signed. */
export interface EthereumCall {
  /** `0x` + 40 hex characters; undefined for a contract creation. */
  readonly to: string | undefined;
  readonly value: bigint;
  readonly chainId: bigint | undefined;
  readonly data: Uint8Array;
}

/** What the bytes of a request say, one entry a thing that needs its own permission. */
export interface ActionUnit {
  /** Names the unit in the trace: `transaction`, `instruction 2`, `call 0`. */
  readonly label: string;
  /** Why the bytes could not be read; every condition on them is then unreadable. */
  readonly undecodable?: string;
  readonly ethereumCall?: EthereumCall;
  readonly typedData?: {
    readonly domain: Readonly<Record<string, unknown>>;
    readonly types: Readonly<Record<string, readonly { name: string; type: string }[]>>;
    readonly primaryType: string;
    readonly message: Readonly<Record<string, unknown>>;
  };
  readonly authorization7702?: { readonly contract: string };
  readonly tempo?: {
    readonly feeToken: string | undefined;
    readonly hasFeePayerSignature: boolean;
    readonly nonceKey: bigint | undefined;
    readonly validBefore: bigint | undefined;
    readonly validAfter: bigint | undefined;
  };
  readonly solanaInstruction?: SolanaInstruction;
  readonly tronContract?: {
    readonly type: string;
    /** Addresses as `41` + 40 hex characters. */
    readonly fields: Readonly<Record<string, bigint | string>>;
    readonly data: Uint8Array | undefined;
  };
  /** The decoded XRPL transaction in the ledger's own JSON form. */
  readonly xrplTransaction?: Readonly<Record<string, unknown>>;
  readonly suiCommands?: readonly SuiCommand[];
  readonly messageBytes?: Uint8Array;
  /** The API body of a wallet action (`transfer`, `earn_deposit`, `earn_withdraw`). */
  readonly requestBody?: Readonly<Record<string, unknown>>;
}

/** A request as a policy sees it: its method and what its bytes do. */
export interface PolicyAction {
  readonly method: string;
  /** At least one. Every unit needs its own ALLOW; one DENY anywhere refuses the request. */
  readonly units: readonly ActionUnit[];
}

/** What evaluation may know beyond the bytes. Read by the caller beforehand; the engine does no I/O. */
export interface PolicyFacts {
  readonly nowMs: number;
  /** Whether the set holds the value; undefined when the set is gone. */
  inConditionSet(conditionSetId: string, candidate: SetCandidate): boolean | undefined;
  /**
   * Sum recorded in the window plus this request's own metric; `unreadable` when that metric cannot be read,
   * undefined when the aggregation is gone.
   */
  aggregation(aggregationId: string): bigint | 'unreadable' | undefined;
}

/** A value looked up in a condition set, under the comparison rule of its kind. */
export interface SetCandidate {
  /** The spellings under which the set may hold it: one, or decimal and `0x` hex of a number. */
  readonly texts: readonly string[];
  /** EVM addresses equal each other whatever their case. */
  readonly ignoreCase: boolean;
}
