import type { Incentives, VaultRates } from '../ports/chains.ts';

// The simulated chains as the control plane uses them.

/** A deposit by the faucet. */
interface ChainDeposit {
  readonly address: string;
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  /** `decimals` and `symbol` apply to a token that does not exist yet. */
  readonly decimals?: number | undefined;
  readonly symbol?: string | undefined;
}

/** A new vault. `offset`: decimals of its shares minus those of the asset. */
interface NewVault {
  readonly name: string;
  readonly asset: string;
  readonly decimals: number;
  readonly symbol: string;
  readonly offset: number;
  readonly apyBps: number;
  readonly feeBps: number;
  readonly feeKind: 'claimable' | 'shares';
  readonly admin: string;
}

interface VaultChange {
  readonly apyBps?: number | undefined;
  readonly rawLiquidity?: bigint | undefined;
  readonly isPaused?: boolean | undefined;
}

interface NewReward {
  readonly address: string;
  readonly tokenAddress: string;
  readonly rawAmount: bigint;
  readonly decimals: number;
  readonly symbol: string;
}

/** Controls the vaults and rewards of simulated EVM chains. */
interface ControllableEarn extends Incentives, VaultRates {
  /** Returns its address. */
  addVault(caip2: string, vault: NewVault): Promise<string>;
  /** Returns the most that it could pay out when `rawLiquidity` exceeds that, and changes nothing then. */
  changeVault(caip2: string, address: string, change: VaultChange): Promise<bigint | undefined>;
  /** Returns false when the address would be given too much. */
  addReward(caip2: string, reward: NewReward): Promise<boolean>;
}

/** Where all of an asset is: `given` by the faucet and `minted` by contracts is what all hold together. */
interface AssetBooks {
  readonly caip2: string;
  readonly tokenAddress: string | null;
  readonly given: bigint;
  readonly minted: bigint;
  readonly held: Readonly<Record<string, bigint>>;
}

/** An open connection to a client of JSON-RPC, which can receive notifications. */
export interface RpcConnection {
  /** Aborted when the connection closes. */
  readonly closed: AbortSignal;
  notify(message: object): void;
}

/** Who calls a method of JSON-RPC. */
interface RpcCaller {
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** When its execution ends, by `performance.now()`. */
  readonly endsAtMs: number;
  /** Undefined for plain HTTP. */
  readonly connection?: RpcConnection | undefined;
}

/** A function or an event with the values of its parameters. */
export interface DecodedItem {
  readonly name: string;
  readonly arguments: readonly { readonly name: string; readonly type: string; readonly value: string }[];
}

/** A transaction in a block. Addresses are lower-case 0x hex, amounts in base units. */
interface IncludedTransaction {
  readonly hash: string;
  readonly block: { readonly number: number; readonly seconds: number };
  readonly sender: string;
  /** Null for the creation of a contract. */
  readonly recipient: string | null;
  readonly contract: string | null;
  readonly value: bigint;
  readonly data: string;
  readonly gasUsed: bigint;
  readonly isDeposit: boolean;
  readonly reason: string | undefined;
  readonly call: DecodedItem | undefined;
  readonly logs: readonly {
    readonly address: string;
    readonly topics: readonly string[];
    readonly data: string;
    readonly event: DecodedItem | undefined;
  }[];
  /** Where it is in the list. */
  readonly position: string;
}

export interface StoredAbi {
  readonly name: string;
  /** Null: of any contract. */
  readonly address: string | null;
  readonly items: readonly unknown[];
}

interface ControllableAbis {
  list(): readonly StoredAbi[];
  put(abi: StoredAbi): StoredAbi | 'malformed' | 'too many';
  /** Returns false when there is none of this name. */
  remove(name: string): boolean;
}

/** Controls the simulated chains. Only chains for which `has` returns true may be passed. */
export interface ControllableChains {
  has(caip2: string): boolean;
  /** `tokenAddress`: null is the native asset. Undefined for a token that does not exist. */
  decimalsOf(caip2: string, tokenAddress: string | null): Promise<number | undefined>;
  /** `fault` names the invalid member of the deposit. */
  fund(
    caip2: string,
    deposit: ChainDeposit,
  ): Promise<
    | { readonly hash: string; readonly rawBalance: bigint; readonly blockNumber: bigint }
    | { readonly fault: 'address' | 'tokenAddress' | 'rawAmount'; readonly message: string }
  >;
  /** Answers a method of the JSON-RPC of the chain's nodes, on EVM chains and Solana. */
  rpc(
    caip2: string,
    call: { readonly method: string; readonly params: readonly unknown[] },
    caller: RpcCaller,
  ): Promise<
    | { readonly result: unknown }
    | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  >;
  /** Ids of the chains in use. */
  used(): Promise<readonly string[]>;
  /** The latest block. */
  head(caip2: string): Promise<{ readonly number: number; readonly seconds: number }>;
  /** The included transactions of an EVM chain, newest first. */
  transactions(
    caip2: string,
    page: { limit: number; before: string | undefined },
  ): Promise<readonly IncludedTransaction[]>;
  /** The interfaces of contracts. */
  abis(): Promise<ControllableAbis>;
  /** Where every asset is, in base units. */
  books(): Promise<readonly AssetBooks[]>;
  /** The vaults and rewards of EVM chains. */
  readonly earn: ControllableEarn;
  /** Mines blocks on one chain, or on every chain in use; returns the latest block numbers. */
  mine(caip2: string | undefined, count: number): Promise<ReadonlyMap<string, bigint>>;
  /** Changes what happens to a pending transaction; false when none with this hash waits for its first block. */
  steer(caip2: string, hash: string, effect: 'drop' | 'replace' | 'revert'): Promise<boolean>;
}
