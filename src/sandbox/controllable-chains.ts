import { assetNamed } from '../engine/assets/known-assets.ts';
import { chainNamed, chainOfCaip2 } from '../engine/assets/known-chains.ts';
import { invalidField } from '../errors.ts';
import type { Incentives, VaultRates } from '../ports/chains.ts';
import type { ControlContext } from './control-plane.ts';
import type { FundSandboxAddressRequest } from './generated/schemas.ts';

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
   * that it could pay out.
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

/** What an included transaction on a simulated chain has changed. Addresses are in the notation of the chain. */
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
  /** Returns the name of the function with this selector, without decoding arguments. */
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
  throw invalidField('/chain', `expected the CAIP-2 id or name of a simulated chain, got \`${chain}\``);
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

const pointers = { address: '/address', tokenAddress: '/token_address', rawAmount: '/raw_amount' } as const;

type Faucet = Pick<ControlContext, 'chains' | 'runDueJobs'>;

/** Reads the balance of an address in base units. A `tokenAddress` of null means the native asset. */
export type ReadBalance = (caip2: string, address: string, tokenAddress: string | null) => Promise<bigint>;

/**
 * Brings the balance of an address up to the amount. Returns whether it was lower.
 *
 * @throws ApiError invalid_data
 */
export async function raiseBalance(
  body: FundSandboxAddressRequest,
  context: Faucet,
  readBalance: ReadBalance,
): Promise<boolean> {
  const deposit = await readDeposit(body, context);
  const { caip2, tokenAddress, address, rawAmount } = deposit;
  const held = await readBalance(caip2, address, tokenAddress);
  if (held >= rawAmount) return false;
  await payOut({ ...deposit, rawAmount: rawAmount - held }, context);
  return true;
}

/**
 * Reads a deposit from the faucet.
 *
 * @throws ApiError invalid_data
 */
export async function readDeposit(body: FundSandboxAddressRequest, { chains }: Faucet) {
  const caip2 = requireSimulated(chains, body.chain);
  const { address, symbol } = body;
  const tokenAddress = tokenAddressOf(caip2, body);
  // CHOICE: by default, a new token has the number of decimals that is usual on its chain.
  const defaultDecimals = caip2.startsWith('eip155:') ? 18 : 6;
  const decimals = (await chains.decimalsOf(caip2, tokenAddress)) ?? body.decimals ?? defaultDecimals;
  return { caip2, address, symbol, tokenAddress, decimals, rawAmount: rawAmountOf(body, decimals) };
}

/**
 * Makes a deposit.
 *
 * @throws ApiError invalid_data for a deposit that the chain rejects.
 */
export async function payOut(
  { caip2, ...deposit }: Awaited<ReturnType<typeof readDeposit>>,
  { chains, runDueJobs }: Faucet,
) {
  const funded = await chains.fund(caip2, deposit);
  if ('fault' in funded) throw invalidField(pointers[funded.fault], funded.message);
  await runDueJobs();
  return funded;
}

/** The native asset for the fees of several transactions, in units, by the namespace of the chain. */
const gasUnits: Readonly<Record<string, string>> = { eip155: '0.1', solana: '0.1', tron: '100' };

/**
 * Adds enough of the native asset for the fees of several transactions. On a chain without one, such as Tempo, fees are
 * paid in tokens, and nothing is added.
 *
 * @throws ApiError invalid_data
 */
export async function payGas(
  { chain, address }: Pick<FundSandboxAddressRequest, 'chain' | 'address'>,
  context: Faucet,
): Promise<void> {
  const caip2 = requireSimulated(context.chains, chain);
  const known = chainOfCaip2(caip2);
  if (known !== undefined && known.native === undefined) return;
  const [namespace = ''] = caip2.split(':');
  await payOut(await readDeposit({ chain, address, amount: gasUnits[namespace] ?? '1' }, context), context);
}

/**
 * Returns the amount in base units. The body has exactly one of `amount` and `raw_amount`.
 *
 * @throws ApiError invalid_data
 */
function rawAmountOf(
  body: { readonly amount?: string | undefined; readonly raw_amount?: string | undefined },
  decimals: number,
): bigint {
  const { amount, raw_amount: raw } = body;
  if ((amount === undefined) === (raw === undefined)) {
    throw invalidField('/amount', 'expected either `amount` or `raw_amount`');
  }
  if (raw !== undefined) return BigInt(raw);
  const [whole = '', fraction = ''] = amount!.split('.');
  if (fraction.length > decimals) {
    throw invalidField('/amount', `expected at most ${decimals} decimal places, got ${fraction.length}`);
  }
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}

/**
 * Returns the address of the token that the body names, by address or by asset name. Returns null for the native
 * asset.
 *
 * @throws ApiError invalid_data
 */
function tokenAddressOf(
  caip2: string,
  body: { readonly asset?: string | undefined; readonly token_address?: string | null | undefined },
): string | null {
  const { asset, token_address: tokenAddress } = body;
  if (asset === undefined) return tokenAddress ?? null;
  if (tokenAddress !== undefined) throw invalidField('/asset', 'expected either `asset` or `token_address`');
  const chain = chainOfCaip2(caip2);
  const known = chain && assetNamed(chain, asset);
  if (known === undefined) {
    throw invalidField('/asset', `\`${asset}\` has no known address on this chain; use \`token_address\``);
  }
  return known.tokenAddress;
}
