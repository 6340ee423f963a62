import type { ChainTransfer, TransferQuery } from './chain-transfers.ts';
import type { SparkOperators } from './spark-operators.ts';

/** Where a broadcast transaction stands, as the chain tells it. */
export type ChainStatus =
  /** Known to the chain and not in a block yet. */
  | { readonly kind: 'pending' }
  /** In a block, its effects are there; `isFinal` when no reorganization can take it back. */
  | ({ readonly kind: 'included'; readonly isFinal: boolean } & Inclusion)
  /** In a block, but only its fee was taken. */
  | ({ readonly kind: 'reverted'; readonly isFinal: boolean; readonly reason: string } & Inclusion)
  /** Another transaction of the same account took its nonce. */
  | { readonly kind: 'replaced'; readonly byHash: string | undefined }
  /** The chain does not know it: never arrived, dropped, or its blockhash is too old to count. */
  | { readonly kind: 'unknown'; readonly isExpired: boolean };

/** Where and at what price a transaction came into a block. */
export interface Inclusion {
  readonly blockNumber: bigint;
  /** Unix seconds. */
  readonly blockTimestampSeconds: number;
  /** In the smallest unit of the native asset; on Tempo, of the token that the fee was paid in. */
  readonly feePaid: bigint;
  /** Of a user operation only: the transaction that carried it, and the place of the entry point's event. */
  readonly operation?: { transactionHash: string; gasUsed: bigint; logIndex: number };
}

/** What a chain said to signed bytes. A node that cannot be reached rejects instead. */
export type BroadcastOutcome =
  /** Taken now or known already: the same bytes may be sent again at any time. */
  | { readonly isAccepted: true; readonly hash: string }
  | { readonly isAccepted: false; readonly reason: BroadcastRefusal; readonly message: string };

export type BroadcastRefusal =
  | 'insufficient_funds'
  /** The nonce or blockhash has been used or is too old: these bytes can never be taken. */
  | 'stale'
  /** The fee is too low to be taken now, or to replace what is pending. */
  | 'underpriced'
  /** Running it fails; only chains that run before they take say this. */
  | 'reverts'
  | 'invalid';

/** What a dry run of a transaction found. */
export type Simulation =
  | { readonly succeeds: true /** Gas (EVM) or compute units (Solana). */; readonly units: bigint }
  | { readonly succeeds: false; readonly reason: BroadcastRefusal; readonly message: string };

/** One chain, as far as every kind of chain can be asked. Addresses are as the chain type writes them. */
export interface Chain {
  readonly caip2: string;
  /** Raw amounts in the order of `tokenAddresses`; null is the native asset; an unknown token holds 0. */
  balances(address: string, tokenAddresses: readonly (string | null)[]): Promise<readonly bigint[]>;
  broadcast(signedBytes: Uint8Array): Promise<BroadcastOutcome>;
  /** `signedBytes` tells its account and nonce or blockhash, which decide whether it can still come. */
  statusOf(hash: string, signedBytes: Uint8Array): Promise<ChainStatus>;
  /** Transfers from or to an address, newest first; undefined where the chain keeps no such list (plain JSON-RPC). */
  transfersOf?(query: TransferQuery): Promise<readonly ChainTransfer[]>;
  /** Every transfer on the chain that came after a position, oldest first; undefined where there is no such list. */
  transfersAfter?(position: string | undefined, limit: number): Promise<readonly ChainTransfer[]>;
}

/** A chain whose id is `eip155:…`. */
export interface EvmChain extends Chain {
  readonly kind: 'evm';
  readonly chainId: bigint;
  /** The next nonce of the account, those in the pool counted. */
  nonce(address: string): Promise<bigint>;
  /** Wei per gas. `maxPriorityFeePerGas` is undefined on a chain before EIP-1559. */
  fees(): Promise<{ readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint | undefined }>;
  /** Runs a call on the newest state without keeping its effects; `units` is an estimate of the gas limit. */
  simulate(call: EvmCall): Promise<Simulation>;
  /** Read-only call: the bytes that the contract returns; empty when there is no contract. */
  read(call: { readonly to: string; readonly data: Uint8Array }): Promise<Uint8Array>;
  /** The code at an address: empty for a plain account, `ef0100` and the contract for one that delegates (EIP-7702). */
  code(address: string): Promise<Uint8Array>;
  /** Undefined where nobody pays the gas of others. */
  readonly bundler?: Bundler;
}

/** Takes user operations (`encodeSponsoredOperation`) to its chain and pays their gas. The hash is the operation's. */
export interface Bundler extends Pick<Chain, 'broadcast' | 'statusOf'> {
  /** The contract that pays. */
  readonly paymaster: string;
}

export interface EvmCall {
  readonly from: string;
  /** Undefined makes a contract. */
  readonly to: string | undefined;
  readonly value: bigint;
  readonly data: Uint8Array;
  /** Delegations that come with the transaction (EIP-7702), signed. */
  readonly authorizationList?: readonly EvmAuthorization[];
  /** Runs it as though the sender delegated to this contract already: before anything is signed. */
  readonly delegatedTo?: string;
}

/** A signed authorization of EIP-7702. */
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
  /** `transactionBytes` need not be signed. */
  simulate(transactionBytes: Uint8Array): Promise<Simulation>;
  /** The token accounts of an owner, by mint. */
  tokenAccounts(
    owner: string,
    mint: string,
  ): Promise<readonly { readonly address: string; readonly rawAmount: bigint }[]>;
  /** What a token's mint says of it; undefined where there is no such mint. */
  mint(address: string): Promise<{ readonly decimals: number; readonly tokenProgram: string } | undefined>;
  /** Lamports that an account of this size must hold to be kept. */
  rentExemption(sizeBytes: number): Promise<bigint>;
  /** Pays the fees of messages that it signs; undefined where nobody pays for others. */
  readonly feePayer?: { readonly address: string; sign(messageBytes: Uint8Array): Promise<Uint8Array> };
}

/** A chain whose id is `tron:…`. */
export interface TronChain extends Chain {
  readonly kind: 'tron';
  /** What a new transaction refers to: 2 and 8 bytes in hex. */
  referenceBlock(): Promise<{ readonly refBlockBytes: string; readonly refBlockHash: string }>;
  /** Runs the raw data of a transaction, unsigned, without keeping its effects; `units` is energy. */
  simulate(rawDataBytes: Uint8Array): Promise<Simulation>;
}

/** A chain of which only what all chains have is asked. */
export interface PlainChain extends Chain {
  readonly kind: 'plain';
  readonly spark?: SparkOperators;
}

export type AnyChain = EvmChain | SolanaChain | TronChain | PlainChain;

/** Every chain that this server can ask. */
export interface Chains {
  /** Undefined where no such chain is configured. */
  find(caip2: string): AnyChain | undefined;
  /** Ids of the chains that were used and keep a list of their transfers; undefined where no chain keeps one. */
  listing?(): Promise<readonly string[]>;
}
