import type { EvmCeilings } from '../engine/assets/fee-ceilings.ts';
import type { SparkOperators } from './spark.ts';

/** A transfer of one asset on a chain, from any sender. */
export interface ChainTransfer {
  readonly hash: string;
  readonly sender: string;
  readonly recipient: string;
  /** The smart contract (EVM) or mint (Solana) of the token; null for the native asset. */
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  readonly blockNumber: bigint;
  readonly blockTimestampSeconds: number;
  /** The position on the chain, which is used as a page cursor. */
  readonly position: string;
  /** Identifies the transfer, even if a reorganization moves its transaction to another block. */
  readonly key: string;
}

/** Selects the next transfers on a chain, from any sender. */
export interface TransferReading {
  /** The `TransferPage.position` of the previous page; undefined to start at the beginning. */
  readonly after: string | undefined;
  /** The maximum number of transfers to return. */
  readonly limit: number;
  readonly watched: WatchedAddresses;
}

/** The watched addresses, spelled as wallets store them. */
export interface WatchedAddresses {
  /** Returns those of the addresses that are watched. */
  among(addresses: readonly string[]): Promise<ReadonlySet<string>>;
  /** Returns the watched Solana addresses after `address`, in ascending order. Undefined starts at the first one. */
  nextOnSolana(address: string | undefined, limit: number): Promise<readonly string[]>;
}

export interface TransferPage {
  /** The transfers, oldest first. They may include transfers to addresses that are not watched. */
  readonly transfers: readonly ChainTransfer[];
  /** Where the next page starts; undefined if the chain has no transfers yet. */
  readonly position: string | undefined;
  /** Whether another page can be read immediately. */
  readonly hasMore: boolean;
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

/** The status of a broadcast transaction, as reported by the chain. */
export type ChainStatus =
  /** The chain has the transaction, but no block includes it yet. */
  | { readonly kind: 'pending'; readonly observed?: Observation }
  /** A block includes it, and it succeeded. `isFinal` means that no reorganization can revert it. */
  | ({ readonly kind: 'included'; readonly isFinal: boolean } & Inclusion)
  /** A block includes it, but its execution was reverted. The fee was charged. */
  | ({ readonly kind: 'reverted'; readonly isFinal: boolean; readonly reason: string } & Inclusion)
  /** Another transaction of the same account used its nonce, and no reorganization can undo that. */
  | { readonly kind: 'replaced'; readonly byHash: string | undefined }
  /**
   * The chain does not have it, because it never received it or dropped it. `isExpired` means that it can certainly
   * never be included.
   */
  | { readonly kind: 'unknown'; readonly isExpired: boolean; readonly observed?: Observation }
  /**
   * No node has the transaction, and according to all of them it can never be included, because its nonce is used or
   * its blockhash is no longer valid. A lagging node reports the same about an included transaction, so further checks
   * are needed.
   */
  | { readonly kind: 'gone'; readonly as: 'replaced' | 'expired'; readonly observed: Observation }
  /** The nodes disagree, or what they report is not final, so the status is unknown. */
  | { readonly kind: 'undecided' };

/** The state of the chain at which the nodes were queried. Chains whose nodes cannot be wrong omit it. */
export interface Observation {
  /** The number of the block that all nodes have reached. */
  readonly at: bigint;
  /** The number of blocks after which the same result, read again, confirms this one. */
  readonly distance: bigint;
}

/** The block that includes a transaction, and the fee. */
export interface Inclusion {
  readonly blockNumber: bigint;
  /** Unix seconds. */
  readonly blockTimestampSeconds: number;
  /** The fee in the smallest unit of the native asset. On Tempo, in the token that paid the fee. */
  readonly feePaid: bigint;
  /** For a user operation, the transaction that included it, and the index of the entry point's event. */
  readonly operation?: { transactionHash: string; gasUsed: bigint; logIndex: number };
}

/** A chain's response to a broadcast. The broadcast rejects when no node can be reached. */
export type BroadcastOutcome =
  /** The node accepted the bytes, or had accepted them before. The same bytes may be broadcast again at any time. */
  | { readonly isAccepted: true; readonly hash: string }
  | {
      readonly isAccepted: false;
      readonly reason: BroadcastRefusal;
      readonly message: string;
      /** Whether a node could not be reached. It may have the bytes from an earlier broadcast. */
      readonly isPartial?: boolean;
    };

export type BroadcastRefusal =
  | 'insufficient_funds'
  /** The nonce is used or the blockhash has expired, so these bytes can never be included. */
  | 'stale'
  /** The fee is too low for the current block, or too low to replace the pending transaction. */
  | 'underpriced'
  /** The execution fails. Only chains that simulate before they accept report this. */
  | 'reverts'
  | 'invalid';

/** The result of simulating a transaction. */
export type Simulation =
  | { readonly succeeds: true /** Gas (EVM) or compute units (Solana). */; readonly units: bigint }
  | { readonly succeeds: false; readonly reason: BroadcastRefusal; readonly message: string };

/** The result of simulating calls in order. Each call can depend on the calls before it. */
export type SequenceSimulation =
  | {
      readonly succeeds: true;
      /** The gas limit of each call; undefined for a call that the node cannot simulate after the previous ones. */
      readonly units: readonly (bigint | undefined)[];
    }
  | {
      readonly succeeds: false;
      /** The index of the first call that fails. */
      readonly index: number;
      readonly reason: BroadcastRefusal;
      readonly message: string;
    };

export interface TransactionMovements {
  readonly blockNumber: bigint;
  readonly movements: readonly TokenMovement[];
}

/** One movement of an asset. Addresses are 0x hex in upper or lower case. */
export interface TokenMovement {
  /** The smart contract of the token; null for the native asset. */
  readonly token: string | null;
  /** The sender; the zero address for a mint. */
  readonly from: string;
  /** The recipient; the zero address for a burn. */
  readonly to: string;
  readonly rawAmount: bigint;
}

/** The operations that every kind of chain supports. Addresses are in the notation of the chain type. */
interface Chain {
  readonly caip2: string;
  /** Returns raw balances in the order of `tokenAddresses` (null is the native asset). Unknown tokens have 0. */
  balances(address: string, tokenAddresses: readonly (string | null)[]): Promise<readonly bigint[]>;
  broadcast(signedBytes: Uint8Array): Promise<BroadcastOutcome>;
  /** Returns a transaction's status. The nonce or blockhash in `signedBytes` shows whether it can still be included. */
  statusOf(hash: string, signedBytes: Uint8Array): Promise<ChainStatus>;
  /** Returns transfers from or to an address, newest first. Undefined for chains without an index. */
  transfersOf?(query: TransferQuery): Promise<readonly ChainTransfer[]>;
  /** Returns the next transfers on the chain; on a chain that may reorganize, only final ones. */
  transfersAfter?(reading: TransferReading): Promise<TransferPage>;
  /**
   * Returns whether `transfersAfter` may return something new after this position. Undefined for chains that cannot
   * tell at less cost than `transfersAfter`.
   */
  transfersAwait?(position: string | undefined): Promise<boolean>;
  /**
   * For how many ms a process claims the reading of the next transfers. Undefined if reading is so fast that it needs
   * no claim.
   */
  readonly transferLeaseMs?: number;
}

/** A chain whose id is `eip155:…`. */
export interface EvmChain extends Chain {
  readonly kind: 'evm';
  readonly chainId: bigint;
  /** The limits of fees and gas; undefined if their source is trusted. */
  readonly ceilings?: EvmCeilings;
  /** Returns the account's next nonce, including transactions in the pool. */
  nonce(address: string): Promise<bigint>;
  /** Returns fees in wei per unit of gas. `maxPriorityFeePerGas` is undefined on a chain without EIP-1559. */
  fees(): Promise<{ readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint | undefined }>;
  /** Returns the time of the latest block in Unix seconds. Smart contracts compare deadlines with it. */
  latestSeconds(): Promise<number>;
  /** Executes calls of one sender in order, as consecutive transactions on the latest state, without committing them. */
  simulate(calls: readonly EvmCall[]): Promise<SequenceSimulation>;
  /**
   * Returns the movements of a transaction: of tokens, of its own value, and the minting and burning of wrapped native
   * assets. Undefined while no block includes it.
   *
   * NOTE: a node's logs do not contain native assets that contracts send, so only simulated chains list these.
   */
  movementsOf(hash: string): Promise<TransactionMovements | undefined>;
  /**
   * Makes a read-only call and returns its return data, which is empty if the call reverts or if no smart contract is
   * at the address. `isConstant` means that the result never changes, so all nodes must return the same result.
   * `settle` chooses from the results of all nodes, or returns undefined if they differ too much to be trusted.
   */
  read(call: {
    readonly to: string;
    readonly data: Uint8Array;
    readonly isConstant?: boolean;
    readonly settle?: (answers: readonly Uint8Array[]) => Uint8Array | undefined;
  }): Promise<Uint8Array>;
  /**
   * Returns the code at an address: empty for a plain account, `ef0100` || smart contract for a delegated account
   * (EIP-7702).
   */
  code(address: string): Promise<Uint8Array>;
  /** Sends sponsored operations and pays for them; undefined if gas cannot be sponsored. */
  readonly bundler?: Bundler;
}

/** Broadcasts user operations (`encodeSponsoredOperation`) and pays their gas. Hashes are user operation hashes. */
export interface Bundler extends Pick<Chain, 'broadcast' | 'statusOf'> {
  /** The smart contract that pays the gas. */
  readonly paymaster: string;
}

export interface EvmCall {
  readonly from: string;
  /** Undefined for a contract creation. */
  readonly to: string | undefined;
  readonly value: bigint;
  readonly data: Uint8Array;
  /** Signed EIP-7702 authorizations in the transaction. */
  readonly authorizationList?: readonly EvmAuthorization[];
  /** The gas price that the code sees (GASPRICE). Default: the base fee. */
  readonly gasPrice?: bigint;
  readonly accessList?: readonly { readonly address: string; readonly storageKeys: readonly string[] }[];
  /** The smart contract to which the sender delegates in the simulation. Needs no signed authorization. */
  readonly delegatedTo?: string;
}

/** A signed EIP-7702 authorization. */
export interface EvmAuthorization {
  readonly contract: string;
  readonly chainId: number;
  readonly nonce: bigint;
  /** 0x hex of r || s || parity. */
  readonly signature: string;
}

/** A chain whose id is `solana:…`. */
export interface SolanaChain extends Chain {
  readonly kind: 'solana';
  latestBlockhash(): Promise<{ readonly blockhash: string; readonly lastValidBlockHeight: bigint }>;
  /** Returns the time of the latest block in Unix seconds. Undefined for chains that make a block per request. */
  latestSeconds?(): Promise<number>;
  simulate(transactionBytes: Uint8Array): Promise<Simulation>;
  /** Returns the owner's token accounts for a mint. */
  tokenAccounts(
    owner: string,
    mint: string,
  ): Promise<readonly { readonly address: string; readonly rawAmount: bigint }[]>;
  /** Returns the properties of a mint. Undefined when it does not exist. */
  mint(address: string): Promise<{ readonly decimals: number; readonly tokenProgram: string } | undefined>;
  /** Returns the lamports that make an account of this size exempt from rent. */
  rentExemption(sizeBytes: number): Promise<bigint>;
  /** Pays the fees of transactions and signs their messages. Undefined if fees cannot be sponsored. */
  readonly feePayer?: { readonly address: string; sign(messageBytes: Uint8Array): Promise<Uint8Array> };
}

/** A chain whose id is `tron:…`. */
export interface TronChain extends Chain {
  readonly kind: 'tron';
  /** Returns the reference block of a new transaction: 2 and 8 bytes in hex. */
  referenceBlock(): Promise<{ readonly refBlockBytes: string; readonly refBlockHash: string }>;
  /** Executes the raw data of an unsigned transaction without committing it. `units` is energy. */
  simulate(rawDataBytes: Uint8Array): Promise<Simulation>;
}

/** A chain with only the common operations. */
export interface PlainChain extends Chain {
  readonly kind: 'plain';
  readonly spark?: SparkOperators;
}

export type AnyChain = EvmChain | SolanaChain | TronChain | PlainChain;

/** The chains to which this server is connected. */
export interface Chains {
  /** Returns undefined when the chain is not configured. */
  find(caip2: string): AnyChain | undefined;
  /** Returns the ids of the chains whose transfers are followed. Undefined if this implementation follows none. */
  listing?(): Promise<readonly string[]>;
}

/** The source of asset prices. */
export interface Prices {
  /** Returns US dollars per unit as decimal strings, by lower-case symbol. Symbols without a price are omitted. */
  inUsd(symbols: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** A swap of two assets on one chain. Addresses are in the notation of the chain type. */
export interface SwapOrder {
  readonly caip2: string;
  /** The account that spends the input. */
  readonly sender: string;
  /** The account that receives the output. */
  readonly recipient: string;
  /** The smart contract of the token; null for the native asset. */
  readonly tokenIn: string | null;
  readonly tokenOut: string | null;
  /** The amount of the input or output, depending on `amountType`, in base units. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  readonly slippageBps: number;
}

/** A way to swap, computed from the current state of the chain. */
export interface SwapRoute {
  /** The calls that the sender makes, in order. The spender needs an allowance first. */
  readonly calls: readonly { readonly to: string; readonly value: bigint; readonly data: Uint8Array }[];
  /** The smart contract that takes the input by an allowance; null if the calls themselves send the input. */
  readonly spender: string | null;
  /** The expected input, and the maximum that the calls spend. */
  readonly rawInput: bigint;
  readonly rawInputMax: bigint;
  /** The expected output, and the minimum that the calls deliver. The calls revert if they would deliver less. */
  readonly rawOutput: bigint;
  readonly rawOutputMin: bigint;
  /** The approximate gas of the calls. */
  readonly gasUnits: bigint;
  readonly expiresAtSeconds: number;
  /** The patterns that find the spent input and the received output among the movements of the transactions. */
  readonly spent: MovementPattern;
  readonly received: MovementPattern;
}

/** Selects movements of one token by sender or recipient. */
export interface MovementPattern {
  readonly token: string;
  readonly from?: string;
  readonly to?: string;
}

/** Why there is no route. */
export interface SwapRefusal {
  readonly fault: 'pair' | 'amount';
  readonly message: string;
}

/** Finds routes between assets of one chain. Methods reject when the chain cannot be reached. */
export interface SwapRoutes {
  supports(caip2: string): boolean;
  /** Returns a route from the current state. It reserves nothing. */
  route(order: SwapOrder): Promise<SwapRoute | SwapRefusal>;
}

/** An account's reward in one token. Amounts are in base units. */
interface IncentiveReward {
  readonly tokenAddress: string;
  readonly symbol: string;
  readonly decimals: number;
  /** Everything that was ever granted to the account, including what it has claimed. */
  readonly rawCumulative: bigint;
  readonly rawClaimed: bigint;
  /** The Merkle proof of the cumulative amount, in 0x hex. */
  readonly proof: readonly string[];
}

/** The rewards of an account on one chain, and the smart contract that pays them. */
export interface IncentiveRewards {
  readonly distributor: string;
  readonly rewards: readonly IncentiveReward[];
}

/** The programs that reward deposits. */
export interface Incentives {
  /** Returns undefined for a chain without such a program. Rejects when the program's service cannot be reached. */
  rewards(caip2: string, address: string): Promise<IncentiveRewards | undefined>;
}

/** The annual yield of a vault, in basis points (hundredths of a percent). */
export interface VaultRate {
  /** The yield before the app's fee. */
  readonly apyBps: number;
  /** The app's share of the yield. */
  readonly feeBps: number;
}

/** The yields of vaults, which the vaults' contracts do not reveal. */
export interface VaultRates {
  /** Returns undefined for a vault whose rate is unknown. */
  rateOf(caip2: string, address: string): Promise<VaultRate | undefined>;
}
