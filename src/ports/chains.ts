import type { EvmCeilings } from '../engine/assets/fee-ceilings.ts';
import type { SparkOperators } from './spark.ts';

/** A transfer of one asset on a chain, from any sender. */
export interface ChainTransfer {
  readonly hash: string;
  readonly sender: string;
  readonly recipient: string;
  /** Contract (EVM) or mint (Solana); null is the native asset. */
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  readonly blockNumber: bigint;
  readonly blockTimestampSeconds: number;
  /** The position on the chain, used as a page cursor. */
  readonly position: string;
  /** Identifies the transfer, also if a reorganization puts its transaction into another block. */
  readonly key: string;
}

/** Asks for the next transfers on a chain, from any sender. */
export interface TransferReading {
  /** `TransferPage.position` of the page before; undefined begins. */
  readonly after: string | undefined;
  /** The most transfers to return. */
  readonly limit: number;
  readonly watched: WatchedAddresses;
}

/** The addresses whose transfers are of interest, in the format in which wallets store them. */
export interface WatchedAddresses {
  /** The addresses among these that are watched. */
  among(addresses: readonly string[]): Promise<ReadonlySet<string>>;
  /** For Solana: the next watched addresses in ascending order; undefined starts with the first. */
  nextOnSolana(address: string | undefined, limit: number): Promise<readonly string[]>;
}

export interface TransferPage {
  /** Oldest first; may contain transfers to addresses that are not watched. */
  readonly transfers: readonly ChainTransfer[];
  /** The start of the next page; undefined if the chain has none yet. */
  readonly position: string | undefined;
  /** Whether more can be read right away. */
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
  /** Known to the chain, not in a block yet. */
  | { readonly kind: 'pending'; readonly look?: Look }
  /** In a block and executed; `isFinal` when no reorganization can revert it. */
  | ({ readonly kind: 'included'; readonly isFinal: boolean } & Inclusion)
  /** In a block, but execution reverted; the fee was charged. */
  | ({ readonly kind: 'reverted'; readonly isFinal: boolean; readonly reason: string } & Inclusion)
  /** Another transaction of the same account used its nonce, which no reorganization can undo. */
  | { readonly kind: 'replaced'; readonly byHash: string | undefined }
  /** Unknown to the chain: never received or dropped. `isExpired`: it can certainly never be included. */
  | { readonly kind: 'unknown'; readonly isExpired: boolean; readonly look?: Look }
  /**
   * No node has the transaction, and by all their answers it can never be included: its nonce is used, or its blockhash
   * is no longer valid. A lagging node answers the same about an included transaction, so one check proves nothing.
   */
  | { readonly kind: 'gone'; readonly as: 'replaced' | 'expired'; readonly look: Look }
  /** The nodes disagree, or what they say is not final: nothing is known. */
  | { readonly kind: 'undecided' };

/** When nodes were asked. Chains that cannot be wrong leave it out. */
export interface Look {
  /** The block up to which all nodes have come. */
  readonly at: bigint;
  /** How many blocks later the same answer counts as another look. */
  readonly distance: bigint;
}

/** The block that includes a transaction, and the fee. */
export interface Inclusion {
  readonly blockNumber: bigint;
  /** Unix seconds. */
  readonly blockTimestampSeconds: number;
  /** In the smallest unit of the native asset; on Tempo, of the token that the fee was paid in. */
  readonly feePaid: bigint;
  /** For a user operation: the transaction that included it, and the index of the entry point's event. */
  readonly operation?: { transactionHash: string; gasUsed: bigint; logIndex: number };
}

/** A chain's response to a broadcast. The promise rejects when no node can be reached. */
export type BroadcastOutcome =
  /** Accepted now or before: the same bytes may be broadcast again at any time. */
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
  /** The nonce is used or the blockhash has expired: these bytes can never be included. */
  | 'stale'
  /** The fee is too low for the current block, or to replace the pending transaction. */
  | 'underpriced'
  /** Execution fails; returned only by chains that simulate before accepting. */
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
      /** The gas limit that each call needs; undefined where the node cannot simulate it after the ones before. */
      readonly units: readonly (bigint | undefined)[];
    }
  | {
      readonly succeeds: false;
      /** The error of the first call that fails. */
      readonly index: number;
      readonly reason: BroadcastRefusal;
      readonly message: string;
    };

/** The movements of a transaction in one block. */
export interface TransactionMovements {
  readonly blockNumber: bigint;
  readonly movements: readonly TokenMovement[];
}

/** One movement of an asset. Addresses are 0x hex in any case. */
export interface TokenMovement {
  /** Null is the native asset. */
  readonly token: string | null;
  /** The zero address when it was minted. */
  readonly from: string;
  /** The zero address when it was burned. */
  readonly to: string;
  readonly rawAmount: bigint;
}

/** The operations that every kind of chain supports. Addresses are in the format of the chain type. */
interface Chain {
  readonly caip2: string;
  /** Raw amounts in the order of `tokenAddresses`; null is the native asset; 0 for an unknown token. */
  balances(address: string, tokenAddresses: readonly (string | null)[]): Promise<readonly bigint[]>;
  broadcast(signedBytes: Uint8Array): Promise<BroadcastOutcome>;
  /** `signedBytes`: their nonce or blockhash determines whether the transaction can still be included. */
  statusOf(hash: string, signedBytes: Uint8Array): Promise<ChainStatus>;
  /** Transfers from or to an address, newest first; undefined for chains without an index (plain JSON-RPC). */
  transfersOf?(query: TransferQuery): Promise<readonly ChainTransfer[]>;
  /** The next transfers on the chain; final, where the chain can be reorganized. */
  transfersAfter?(reading: TransferReading): Promise<TransferPage>;
  /** How long one process may take to read the next transfers; undefined if that takes no time worth sharing. */
  readonly transferLeaseMs?: number;
}

/** A chain whose id is `eip155:…`. */
export interface EvmChain extends Chain {
  readonly kind: 'evm';
  readonly chainId: bigint;
  /** Undefined if the source of fees and gas is trusted. */
  readonly ceilings?: EvmCeilings;
  /** The account's next nonce, counting transactions in the pool. */
  nonce(address: string): Promise<bigint>;
  /** Wei per gas. `maxPriorityFeePerGas` is undefined on a chain without EIP-1559. */
  fees(): Promise<{ readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint | undefined }>;
  /** The time of the latest block, Unix seconds: contracts compare deadlines with it. */
  latestSeconds(): Promise<number>;
  /** Executes a call on the latest state without committing it; `units` is the estimated gas limit. */
  simulate(call: EvmCall): Promise<Simulation>;
  /** Executes calls of one sender one after the other, as consecutive transactions, without committing them. */
  simulateSequence(calls: readonly EvmCall[]): Promise<SequenceSimulation>;
  /**
   * The movements of a transaction: tokens, its own value, and wrapped native assets as the minting and burning of
   * their token. Undefined while no block includes it.
   *
   * NOTE: native assets that contracts send are not in a node's logs, so only simulated chains list them.
   */
  movementsOf(hash: string): Promise<TransactionMovements | undefined>;
  /**
   * Read-only call; returns the contract's return data, empty without a contract. `isConstant`: the answer never
   * changes, so all nodes must give the same. `settle`: chooses from the answers of all nodes; undefined if they differ
   * by too much to be believed.
   */
  read(call: {
    readonly to: string;
    readonly data: Uint8Array;
    readonly isConstant?: boolean;
    readonly settle?: (answers: readonly Uint8Array[]) => Uint8Array | undefined;
  }): Promise<Uint8Array>;
  /** The code at an address: empty for a plain account, `ef0100` || contract for a delegated account (EIP-7702). */
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
  /** Simulates as if the sender already delegated to this contract; needs no signed authorization. */
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
  /** The time of the latest block, Unix seconds; undefined for chains whose blocks follow requests. */
  latestSeconds?(): Promise<number>;
  /** `transactionBytes` may be unsigned. */
  simulate(transactionBytes: Uint8Array): Promise<Simulation>;
  /** The owner's token accounts for a mint. */
  tokenAccounts(
    owner: string,
    mint: string,
  ): Promise<readonly { readonly address: string; readonly rawAmount: bigint }[]>;
  /** The properties of a mint; undefined when it does not exist. */
  mint(address: string): Promise<{ readonly decimals: number; readonly tokenProgram: string } | undefined>;
  /** Lamports that an account of this size must hold to be exempt from rent. */
  rentExemption(sizeBytes: number): Promise<bigint>;
  /** Pays the fees of messages that it signs; undefined if fees cannot be sponsored. */
  readonly feePayer?: { readonly address: string; sign(messageBytes: Uint8Array): Promise<Uint8Array> };
}

/** A chain whose id is `tron:…`. */
export interface TronChain extends Chain {
  readonly kind: 'tron';
  /** The reference block of a new transaction: 2 and 8 bytes in hex. */
  referenceBlock(): Promise<{ readonly refBlockBytes: string; readonly refBlockHash: string }>;
  /** Executes the raw data of an unsigned transaction without committing it; `units` is energy. */
  simulate(rawDataBytes: Uint8Array): Promise<Simulation>;
}

/** A chain with only the common operations. */
export interface PlainChain extends Chain {
  readonly kind: 'plain';
  readonly spark?: SparkOperators;
}

export type AnyChain = EvmChain | SolanaChain | TronChain | PlainChain;

/** The chains that this server is connected to. */
export interface Chains {
  /** Undefined when the chain is not configured. */
  find(caip2: string): AnyChain | undefined;
  /** Ids of the chains in use whose transfers can be read; undefined when there are none. */
  listing?(): Promise<readonly string[]>;
}

/** Prices of assets. */
export interface Prices {
  /** US dollars for one unit as decimal strings, by lower-case symbol; omits symbols without a price. */
  inUsd(symbols: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** A swap of two assets of one chain. Addresses in the notation of the chain. */
export interface SwapOrder {
  readonly caip2: string;
  /** Spends the input. */
  readonly sender: string;
  /** Receives the output. */
  readonly recipient: string;
  /** Contract; null is the native asset. */
  readonly tokenIn: string | null;
  readonly tokenOut: string | null;
  /** In base units of the input or output, depending on `amountType`. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  readonly slippageBps: number;
}

/** How to swap at the current state of the chain. */
export interface SwapRoute {
  /** The calls of the sender, in order, once the spender may take the input. */
  readonly calls: readonly { readonly to: string; readonly value: bigint; readonly data: Uint8Array }[];
  /** The contract that takes the input by an allowance; null when the calls carry it. */
  readonly spender: string | null;
  /** The expected input, and the most that the calls spend. */
  readonly rawInput: bigint;
  readonly rawInputMax: bigint;
  /** The expected output, and the least that the calls deliver; with less they revert. */
  readonly rawOutput: bigint;
  readonly rawOutputMin: bigint;
  /** The gas that the calls use, approximately. */
  readonly gasUnits: bigint;
  readonly expiresAtSeconds: number;
  /** Where the spent input and the output appear among the movements of the transactions. */
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
  /** Whether swaps on this chain are routed at all. */
  supports(caip2: string): boolean;
  /** Reserves nothing; each call reads the current state. */
  route(order: SwapOrder): Promise<SwapRoute | SwapRefusal>;
}

/** A reward of an account in one token. Amounts in base units. */
interface IncentiveReward {
  readonly tokenAddress: string;
  readonly symbol: string;
  readonly decimals: number;
  /** The total that the account was given, including what it has claimed. */
  readonly rawCumulative: bigint;
  readonly rawClaimed: bigint;
  /** The Merkle proof of the cumulative amount; 0x hex. */
  readonly proof: readonly string[];
}

/** The rewards of an account on one chain, and the contract that pays them. */
export interface IncentiveRewards {
  readonly distributor: string;
  readonly rewards: readonly IncentiveReward[];
}

/** The programs that reward deposits. */
export interface Incentives {
  /** Undefined for a chain without such a program. Rejects when the system cannot be reached. */
  rewards(caip2: string, address: string): Promise<IncentiveRewards | undefined>;
}

/** The annual yield of a vault in hundredths of a percent. */
export interface VaultRate {
  /** Before the app's fee. */
  readonly apyBps: number;
  /** The app's part of the yield. */
  readonly feeBps: number;
}

/** The yields of vaults, which their contracts do not reveal. */
export interface VaultRates {
  /** Undefined for a vault whose rate is unknown. */
  rateOf(caip2: string, address: string): Promise<VaultRate | undefined>;
}
