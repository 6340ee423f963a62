import type { EvmCeilings } from '../engine/assets/fee-ceilings.ts';
import type { SparkOperators } from './spark.ts';

/** A transfer of one asset on a chain, from any sender. */
export interface ChainTransfer {
  readonly hash: string;
  readonly sender: string;
  readonly recipient: string;
  /** The contract (EVM) or mint (Solana). Null is the native asset. */
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  readonly blockNumber: bigint;
  readonly blockTimestampSeconds: number;
  /** The position on the chain, which is used as a page cursor. */
  readonly position: string;
  /** Identifies the transfer, even if a reorganization moves its transaction to another block. */
  readonly key: string;
}

/** A query for the next transfers on a chain, from any sender. */
export interface TransferReading {
  /** The `TransferPage.position` of the previous page. Undefined starts at the beginning. */
  readonly after: string | undefined;
  /** The maximum number of transfers to return. */
  readonly limit: number;
  readonly watched: WatchedAddresses;
}

/** The watched addresses, in the format in which wallets store them. */
export interface WatchedAddresses {
  /** Returns those of the addresses that are watched. */
  among(addresses: readonly string[]): Promise<ReadonlySet<string>>;
  /** For Solana, returns the next watched addresses in ascending order. Undefined starts with the first. */
  nextOnSolana(address: string | undefined, limit: number): Promise<readonly string[]>;
}

export interface TransferPage {
  /** The transfers, oldest first. They may include transfers to addresses that are not watched. */
  readonly transfers: readonly ChainTransfer[];
  /** The start of the next page. Undefined if the chain has none yet. */
  readonly position: string | undefined;
  /** Whether more transfers can be read immediately. */
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
  | { readonly kind: 'pending'; readonly look?: Look }
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
  | { readonly kind: 'unknown'; readonly isExpired: boolean; readonly look?: Look }
  /**
   * No node has the transaction, and according to all of them it can never be included, because its nonce is used or
   * its blockhash is no longer valid. A lagging node reports the same about an included transaction, so one check
   * proves nothing.
   */
  | { readonly kind: 'gone'; readonly as: 'replaced' | 'expired'; readonly look: Look }
  /** The nodes disagree, or what they report is not final, so nothing is known. */
  | { readonly kind: 'undecided' };

/** When the nodes were queried. Chains that cannot be wrong omit it. */
export interface Look {
  /** The block that all nodes have reached. */
  readonly at: bigint;
  /** The number of blocks after which the same result counts as a second check. */
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

/** A chain's response to a broadcast. The promise rejects when no node can be reached. */
export type BroadcastOutcome =
  /** The bytes were accepted now or before. The same bytes may be broadcast again at any time. */
  | { readonly isAccepted: true; readonly hash: string }
  | {
      readonly isAccepted: false;
      readonly reason: BroadcastRefusal;
      readonly message: string;
      /** Set if a node could not be reached. It may have the bytes from an earlier broadcast. */
      readonly isPartial?: boolean;
    };

export type BroadcastRefusal =
  | 'insufficient_funds'
  /** The nonce is used or the blockhash has expired, so these bytes can never be included. */
  | 'stale'
  /** The fee is too low for the current block, or too low to replace the pending transaction. */
  | 'underpriced'
  /** The execution fails. Only chains that simulate before they accept return it. */
  | 'reverts'
  | 'invalid';

/** The result of simulating a transaction. */
export type Simulation =
  | { readonly succeeds: true /** Gas (EVM) or compute units (Solana). */; readonly units: bigint }
  | { readonly succeeds: false; readonly reason: BroadcastRefusal; readonly message: string };

/** The result of simulating calls that build on each other. */
export type SequenceSimulation =
  | {
      readonly succeeds: true;
      /** The gas limit of each call. Undefined if the node cannot simulate the call after the previous ones. */
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

/** One movement of an asset. Addresses are 0x hex in any case. */
export interface TokenMovement {
  /** Null is the native asset. */
  readonly token: string | null;
  /** The sender, or the zero address when it was minted. */
  readonly from: string;
  /** The recipient, or the zero address when it was burned. */
  readonly to: string;
  readonly rawAmount: bigint;
}

/** The operations that every kind of chain supports. Addresses are in the notation of the chain type. */
interface Chain {
  readonly caip2: string;
  /** Returns raw amounts in the order of `tokenAddresses`. Null is the native asset; unknown tokens have 0. */
  balances(address: string, tokenAddresses: readonly (string | null)[]): Promise<readonly bigint[]>;
  broadcast(signedBytes: Uint8Array): Promise<BroadcastOutcome>;
  /** The nonce or blockhash in `signedBytes` determines whether the transaction can still be included. */
  statusOf(hash: string, signedBytes: Uint8Array): Promise<ChainStatus>;
  /** Returns transfers from or to an address, newest first. Undefined for chains without an index (plain JSON-RPC). */
  transfersOf?(query: TransferQuery): Promise<readonly ChainTransfer[]>;
  /** Returns the next transfers on the chain. On a chain that can be reorganized, they are final. */
  transfersAfter?(reading: TransferReading): Promise<TransferPage>;
  /**
   * How long the claim of a process to read the next transfers lasts. Undefined if the reading takes too little time
   * to be shared.
   */
  readonly transferLeaseMs?: number;
}

/** A chain whose id is `eip155:…`. */
export interface EvmChain extends Chain {
  readonly kind: 'evm';
  readonly chainId: bigint;
  /** Undefined if the source of fees and gas is trusted. */
  readonly ceilings?: EvmCeilings;
  /** Returns the account's next nonce, including transactions in the pool. */
  nonce(address: string): Promise<bigint>;
  /** Returns fees in wei per gas. `maxPriorityFeePerGas` is undefined on a chain without EIP-1559. */
  fees(): Promise<{ readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint | undefined }>;
  /** Returns the time of the latest block in Unix seconds, with which contracts compare deadlines. */
  latestSeconds(): Promise<number>;
  /** Executes a call on the latest state without committing it. `units` is the estimated gas limit. */
  simulate(call: EvmCall): Promise<Simulation>;
  /** Executes calls of one sender in order, as consecutive transactions, without committing them. */
  simulateSequence(calls: readonly EvmCall[]): Promise<SequenceSimulation>;
  /**
   * Returns the movements of a transaction: tokens, its own value, and the minting and burning of wrapped native
   * assets. Undefined while no block includes it.
   *
   * NOTE: native assets that contracts send are not in a node's logs, so only simulated chains list them.
   */
  movementsOf(hash: string): Promise<TransactionMovements | undefined>;
  /**
   * Makes a read-only call and returns the contract's return data, which is empty without a contract. `isConstant`: the
   * result never changes, so all nodes must return the same result. `settle` chooses from the results of all nodes, or
   * returns undefined if they differ too much to be trusted.
   */
  read(call: {
    readonly to: string;
    readonly data: Uint8Array;
    readonly isConstant?: boolean;
    readonly settle?: (answers: readonly Uint8Array[]) => Uint8Array | undefined;
  }): Promise<Uint8Array>;
  /**
   * Returns the code at an address: empty for a plain account, `ef0100` || contract for a delegated account
   * (EIP-7702).
   */
  code(address: string): Promise<Uint8Array>;
  /** Undefined if gas cannot be sponsored. */
  readonly bundler?: Bundler;
}

/** Broadcasts user operations (`encodeSponsoredOperation`) and pays their gas. Hashes are user operation hashes. */
export interface Bundler extends Pick<Chain, 'broadcast' | 'statusOf'> {
  /** The contract that pays the gas. */
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
  /** The result of GASPRICE. Default: the base fee. */
  readonly gasPrice?: bigint;
  readonly accessList?: readonly { readonly address: string; readonly storageKeys: readonly string[] }[];
  /** Simulates as if the sender had already delegated to this contract. Needs no signed authorization. */
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
  /** Returns the time of the latest block in Unix seconds. Undefined for chains whose blocks follow requests. */
  latestSeconds?(): Promise<number>;
  simulate(transactionBytes: Uint8Array): Promise<Simulation>;
  /** Returns the owner's token accounts for a mint. */
  tokenAccounts(
    owner: string,
    mint: string,
  ): Promise<readonly { readonly address: string; readonly rawAmount: bigint }[]>;
  /** Returns the properties of a mint. Undefined when it does not exist. */
  mint(address: string): Promise<{ readonly decimals: number; readonly tokenProgram: string } | undefined>;
  /** Returns the lamports with which an account of this size is exempt from rent. */
  rentExemption(sizeBytes: number): Promise<bigint>;
  /** Pays the fees of messages that it signs. Undefined if fees cannot be sponsored. */
  readonly feePayer?: { readonly address: string; sign(messageBytes: Uint8Array): Promise<Uint8Array> };
}

/** A chain whose id is `tron:…`. */
export interface TronChain extends Chain {
  readonly kind: 'tron';
  /** The reference block of a new transaction: 2 and 8 bytes in hex. */
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
  /** Returns the ids of the chains in use whose transfers can be read. Undefined when there are none. */
  listing?(): Promise<readonly string[]>;
}

/** Prices of assets. */
export interface Prices {
  /** Returns US dollars per unit as decimal strings, by lower-case symbol. Symbols without a price are omitted. */
  inUsd(symbols: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** A swap of two assets on one chain. Addresses are in the notation of the chain type. */
export interface SwapOrder {
  readonly caip2: string;
  /** Spends the input. */
  readonly sender: string;
  /** Receives the output. */
  readonly recipient: string;
  /** The contract. Null is the native asset. */
  readonly tokenIn: string | null;
  readonly tokenOut: string | null;
  /** The amount in base units of the input or output, depending on `amountType`. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  readonly slippageBps: number;
}

/** A way to swap in the current state of the chain. */
export interface SwapRoute {
  /** The calls of the sender, in order. They need the allowance of the spender first. */
  readonly calls: readonly { readonly to: string; readonly value: bigint; readonly data: Uint8Array }[];
  /** The contract that takes the input by an allowance. Null when the calls carry the input. */
  readonly spender: string | null;
  /** The expected input, and the maximum that the calls spend. */
  readonly rawInput: bigint;
  readonly rawInputMax: bigint;
  /** The expected output, and the minimum that the calls deliver. With less, they revert. */
  readonly rawOutput: bigint;
  readonly rawOutputMin: bigint;
  /** The gas that the calls use, approximately. */
  readonly gasUnits: bigint;
  readonly expiresAtSeconds: number;
  /** The patterns by which the spent input and the output are found among the movements of the transactions. */
  readonly spent: MovementPattern;
  readonly received: MovementPattern;
}

/** Selects movements of one token by sender or recipient. */
export interface MovementPattern {
  readonly token: string;
  readonly from?: string;
  readonly to?: string;
}

/** The reason why there is no route. */
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

/** A reward of an account in one token. Amounts in base units. */
interface IncentiveReward {
  readonly tokenAddress: string;
  readonly symbol: string;
  readonly decimals: number;
  /** The total that the account was given, including the amount that it has claimed. */
  readonly rawCumulative: bigint;
  readonly rawClaimed: bigint;
  /** The Merkle proof of the cumulative amount, in 0x hex. */
  readonly proof: readonly string[];
}

/** The rewards of an account on one chain, and the contract that pays them. */
export interface IncentiveRewards {
  readonly distributor: string;
  readonly rewards: readonly IncentiveReward[];
}

/** The programs that reward deposits. */
export interface Incentives {
  /** Returns undefined for a chain without such a program. Rejects when the system cannot be reached. */
  rewards(caip2: string, address: string): Promise<IncentiveRewards | undefined>;
}

/** The annual yield of a vault in hundredths of a percent. */
export interface VaultRate {
  /** The yield before the app's fee. */
  readonly apyBps: number;
  /** The app's share of the yield. */
  readonly feeBps: number;
}

/** The yields of vaults, which their contracts do not reveal. */
export interface VaultRates {
  /** Returns undefined for a vault whose rate is unknown. */
  rateOf(caip2: string, address: string): Promise<VaultRate | undefined>;
}
