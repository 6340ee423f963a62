import { chainNamed } from '../engine/assets/known-chains.ts';
import { invalidField } from '../errors.ts';
import type { Incentives, VaultRates } from '../ports/chains.ts';
import { chainMeantBy } from './why/corrected-value.ts';

// The interface of the simulated chains that the control plane uses.

/** A deposit from the faucet. */
interface ChainDeposit {
  readonly address: string;
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  /** `decimals` and `symbol` are for a token that does not exist yet. */
  readonly decimals?: number | undefined;
  readonly symbol?: string | undefined;
}

/** A vault to create. `offset` is the number of decimals of its shares minus that of its asset. */
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
  addVault(caip2: string, vault: NewVault): Promise<string>;
  /**
   * Changes a vault. If `rawLiquidity` exceeds what the vault could pay out, changes nothing and returns the amount
   * that it could pay out. Otherwise returns undefined.
   */
  changeVault(caip2: string, address: string, change: VaultChange): Promise<bigint | undefined>;
  /** Adds a reward. Returns false if the address's total would exceed the maximum. */
  addReward(caip2: string, reward: NewReward): Promise<boolean>;
}

/**
 * Where all units of an asset are. All holders together have the units that the faucet has `given` plus those that
 * smart contracts have `minted`.
 */
interface AssetBooks {
  readonly caip2: string;
  readonly tokenAddress: string | null;
  readonly symbol: string | null;
  readonly decimals: number;
  readonly given: bigint;
  readonly minted: bigint;
  readonly held: Readonly<Record<string, bigint>>;
}

/** Both reserves of a pool, or both amounts of a trade, in base units and in the order of the pool's tokens. */
type PoolAmounts = readonly [bigint, bigint];

/** A pool whose trades keep the product of its two reserves, apart from its fee. */
export interface Pool {
  readonly caip2: string;
  readonly address: string;
  readonly tokens: readonly [string, string];
  readonly reserves: PoolAmounts;
  /** The trades of the given transaction, in order. */
  readonly trades: readonly {
    readonly paidIn: PoolAmounts;
    readonly paidOut: PoolAmounts;
    readonly before: PoolAmounts;
    readonly after: PoolAmounts;
  }[];
}

/** The amount of an asset that an address holds, in base units. */
interface AddressHolding {
  readonly caip2: string;
  readonly address: string;
  readonly rawAmount: bigint;
  readonly decimals: number;
  /** The asset that has the same price, as a key of `prices`. */
  readonly pricedAs: string;
}

/** The symbol (null if the smart contract reports none) and the decimals of an asset. */
export interface AssetTerms {
  readonly symbol: string | null;
  readonly decimals: number;
}

/** The effects of an included transaction on a simulated chain. Addresses are in the notation of the chain. */
interface TransactionEffects {
  readonly movements: readonly {
    readonly from: string;
    readonly to: string;
    /** Null for the native asset. */
    readonly tokenAddress: string | null;
    readonly rawAmount: bigint;
  }[];
  /** Empty on chains other than EVM chains. */
  readonly logs: IncludedTransaction['logs'];
}

/** An open JSON-RPC connection, which can send notifications to the client. */
export interface RpcConnection {
  /** Aborted when the connection closes. */
  readonly closed: AbortSignal;
  notify(message: object): void;
}

/** The caller of a JSON-RPC method. */
interface RpcCaller {
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Returns whether the execution has taken too long and must end. */
  readonly isLate: () => boolean;
  /** Undefined for a call by plain HTTP. */
  readonly connection?: RpcConnection | undefined;
}

/** A function or an event with the values of its parameters. */
export interface DecodedItem {
  readonly name: string;
  readonly arguments: readonly { readonly name: string; readonly type: string; readonly value: string }[];
}

/** A transaction in a block. Addresses of EVM chains are lower-case 0x hex; amounts are in base units. */
interface IncludedTransaction {
  readonly hash: string;
  readonly block: { readonly number: number; readonly seconds: number };
  readonly sender: string;
  /** Null for the creation of a smart contract. */
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
  /** The lines that programs have logged. Empty on EVM chains. */
  readonly messages: readonly string[];
  /** Where the transaction is in the list. A client sends it to get the next page. */
  readonly position: string;
}

export interface StoredAbi {
  readonly name: string;
  /** The address of the smart contract; null for any contract. */
  readonly address: string | null;
  readonly items: readonly unknown[];
}

interface ControllableAbis {
  list(): readonly StoredAbi[];
  put(abi: StoredAbi): StoredAbi | 'malformed' | 'too many';
  /** Removes an interface. Returns false if none has this name. */
  remove(name: string): boolean;
  /**
   * Decodes the data of a call. Addresses and data are lower-case 0x hex. Returns undefined if no known function
   * matches.
   */
  call(to: string, data: string): DecodedItem | undefined;
  /**
   * Returns the name of the function with this selector, without decoding arguments. Undefined if no function is known.
   */
  functionName(to: string, selector: string): string | undefined;
}

/** Controls the simulated chains. Callers may pass only chains for which `has` returns true. */
export interface ControllableChains {
  has(caip2: string): boolean;
  /**
   * Returns the number of decimals, or undefined for a token that does not exist. A `tokenAddress` of null means the
   * native asset.
   */
  decimalsOf(caip2: string, tokenAddress: string | null): Promise<number | undefined>;
  /**
   * Returns symbol and decimals, or undefined for a token that does not exist. A `tokenAddress` of null means the
   * native asset.
   */
  termsOf(caip2: string, tokenAddress: string | null): Promise<AssetTerms | undefined>;
  /** Returns the effects of a transaction. They are empty until a block includes it. */
  effectsOf(caip2: string, hash: string): Promise<TransactionEffects>;
  /** Deposits an asset from the faucet. If the deposit is invalid, `fault` names the invalid member. */
  fund(
    caip2: string,
    deposit: ChainDeposit,
  ): Promise<
    | { readonly hash: string; readonly rawBalance: bigint; readonly blockNumber: bigint }
    | { readonly fault: 'address' | 'tokenAddress' | 'rawAmount'; readonly message: string }
  >;
  /** Runs a JSON-RPC method as a node of the chain would, on EVM chains and Solana. */
  rpc(
    caip2: string,
    call: { readonly method: string; readonly params: readonly unknown[] },
    caller: RpcCaller,
  ): Promise<
    | { readonly result: unknown }
    | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  >;
  /** Returns the ids of the chains in use. */
  used(): Promise<readonly string[]>;
  /** Returns the latest block, the time between two blocks, and the confirmations after which a block is final. */
  head(caip2: string): Promise<{
    readonly number: number;
    readonly seconds: number;
    readonly blockMs: number;
    readonly finalityBlocks: number;
  }>;
  /** Returns the included transactions of an EVM chain or a Solana chain, newest first. */
  transactions(
    caip2: string,
    page: { limit: number; before: string | undefined },
  ): Promise<readonly (IncludedTransaction & Pick<TransactionEffects, 'movements'>)[]>;
  /** Returns the interfaces of smart contracts. */
  abis(): Promise<ControllableAbis>;
  /** Returns the books of every asset, in base units. */
  books(): Promise<readonly AssetBooks[]>;
  /**
   * Returns the pools of simulated EVM chains, of one chain or of all chains in use. With the hash of a transaction,
   * only the pools in which it traded, in order.
   */
  pools(query: {
    readonly caip2: string | undefined;
    readonly hash: string | undefined;
  }): Promise<readonly Pool[]>;
  /** Returns the balances of addresses in the assets that have a price, on the EVM, Solana and Tron chains in use. */
  holdings(addresses: readonly string[]): Promise<readonly AddressHolding[]>;
  /** Controls the vaults and rewards of EVM chains. */
  readonly earn: ControllableEarn;
  /** Mines blocks on one chain, or on every chain in use. Returns the latest block numbers. */
  mine(caip2: string | undefined, count: number): Promise<ReadonlyMap<string, bigint>>;
  /**
   * Changes the outcome of a pending transaction. Returns false if no transaction with this hash is waiting for its
   * first block.
   */
  steer(caip2: string, hash: string, effect: 'drop' | 'replace' | 'revert'): Promise<boolean>;
}

/**
 * Returns the CAIP-2 id of a simulated chain that is given by id or name.
 *
 * @throws ApiError invalid_data
 */
export function requireSimulated(chains: ControllableChains, chain: string): string {
  const caip2 = chainNamed(chain)?.caip2 ?? chain;
  if (chains.has(caip2)) return caip2;
  const meant = chainMeantBy(chain);
  const question = meant !== undefined && chains.has(meant.caip2) ? `; did you mean \`${meant.name}\`?` : '';
  throw invalidField(
    '/chain',
    `expected the CAIP-2 id or name of a simulated chain, got \`${chain}\`${question}`,
  );
}

/**
 * Returns the CAIP-2 id of a simulated EVM chain.
 *
 * @throws ApiError invalid_data
 */
export function requireSimulatedEvm(chains: ControllableChains, chain: string): string {
  const caip2 = requireSimulated(chains, chain);
  if (caip2.startsWith('eip155:')) return caip2;
  throw invalidField('/chain', `expected an EVM chain, got \`${chain}\``);
}

/**
 * Returns the CAIP-2 id of a simulated chain whose nodes offer JSON-RPC. The chain is given by id, name or, on EVM,
 * number.
 *
 * @throws ApiError invalid_data
 */
export function rpcChain(chains: ControllableChains, chain: string): string {
  const caip2 = requireSimulated(chains, /^\d+$/.test(chain) ? `eip155:${chain}` : chain);
  if (hasJsonRpc(caip2)) return caip2;
  throw invalidField('/chain', `expected an EVM or Solana chain, got \`${chain}\``);
}

/** Returns whether the nodes of a simulated chain offer JSON-RPC. */
export function hasJsonRpc(caip2: string): boolean {
  return /^(eip155|solana):/.test(caip2);
}
