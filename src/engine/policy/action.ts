/** An account of a Solana instruction. An account behind an address lookup table cannot be resolved offline. */
export type SolanaAccount = string | { readonly behindLookupTable: true };

/** A decoded Solana instruction. `name` and `fields` are set only for programs whose layout is known. */
export interface SolanaInstruction {
  readonly programId: SolanaAccount;
  readonly program: 'system' | 'token' | 'other';
  /** `Transfer`, `TransferChecked`, …; undefined for a known program's instruction with an unknown layout. */
  readonly name: string | undefined;
  /** Describes the instruction if its program is known but its layout is not. */
  readonly unread?: string | undefined;
  readonly fields: Readonly<Record<string, bigint | SolanaAccount>>;
}

/** One command of a Sui programmable transaction. `name` is undefined for an unsupported command. */
export interface SuiCommand {
  readonly name: 'TransferObjects' | 'SplitCoins' | 'MergeCoins' | undefined;
  /** TransferObjects: the recipient, if it is a pure address input. */
  readonly recipient?: string | undefined;
  /** TransferObjects: the sum of the split-off coins that it transfers, if every amount is a pure u64 input. */
  readonly amount?: bigint | undefined;
}

/** An EVM call, decoded from the bytes to be signed. */
export interface EthereumCall {
  /** `0x` and 40 hex characters; undefined for a contract creation. */
  readonly to: string | undefined;
  readonly value: bigint;
  readonly chainId: bigint | undefined;
  readonly data: Uint8Array;
}

/** One part of a request that needs its own permission: a transaction, an instruction or a call. */
export interface ActionUnit {
  /** Names the unit in the trace: `transaction`, `instruction 2`, `call 0`. */
  readonly label: string;
  /** Why the bytes could not be decoded. Every condition on them is then `unreadable`. */
  readonly undecodable?: string;
  readonly ethereumCall?: EthereumCall;
  /** The gas terms of an EVM transaction, for readers of traces. The API has no condition on them. */
  readonly fee?: {
    readonly gasLimit: bigint;
    /** Wei. */
    readonly pricePerGas: bigint;
    /** gasLimit × pricePerGas, in wei. */
    readonly most: bigint;
  };
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
    /** Addresses are `41` and 40 hex characters. */
    readonly fields: Readonly<Record<string, bigint | string>>;
    readonly data: Uint8Array | undefined;
  };
  /** The decoded transaction in the XRP Ledger's JSON format. */
  readonly xrplTransaction?: Readonly<Record<string, unknown>>;
  readonly suiCommands?: readonly SuiCommand[];
  readonly messageBytes?: Uint8Array;
  /** The API body of a wallet action (`transfer`, `earn_deposit`, `earn_withdraw`). */
  readonly requestBody?: Readonly<Record<string, unknown>>;
}

/** A request as policies evaluate it: its method and its decoded units. */
export interface PolicyAction {
  readonly method: string;
  /** At least one unit. Every unit needs a matching ALLOW, and a single matching DENY denies the request. */
  readonly units: readonly ActionUnit[];
  /** Whether ALLOW rules for `*` do not apply; see `strict-methods.ts`. */
  readonly isNamedOnly?: boolean;
}

/** Facts that are not in the request's bytes. The caller reads them in advance, because the engine does no I/O. */
export interface PolicyFacts {
  readonly nowMs: number;
  /** Returns whether the set contains the value, or undefined if the set was deleted. */
  inConditionSet(conditionSetId: string, candidate: SetCandidate): boolean | undefined;
  /**
   * Returns the recorded sum of the window plus the amount that this request adds. Returns `unreadable` if that
   * amount cannot be read, and undefined if the aggregation was deleted.
   */
  aggregation(aggregationId: string): bigint | 'unreadable' | undefined;
  /**
   * Receives the number of parts of the action that are searched for a field, so that the caller can bound the work.
   */
  lookedThrough?(parts: number): void;
}

/** A value to look up in a condition set, in all notations that a set may contain. */
export interface SetCandidate {
  readonly exact: readonly string[];
  /** Notations that are compared in lower case, such as EVM addresses. */
  readonly ignoringCase: readonly string[];
  /** The `numberKey` of each notation of a number, such as decimal and `0x` hex. */
  readonly numbers: readonly string[];
}
