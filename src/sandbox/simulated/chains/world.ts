import type {
  AnyChain,
  ChainTransfer,
  TransactionMovements,
  TransferPage,
  TransferQuery,
  TransferReading,
} from '../../../ports/chains.ts';
import type { DrawTransactionFault } from '../../../ports/requests.ts';
import type { Clock, Log } from '../../../ports/runtime.ts';
import type { Abis } from './evm/abis.ts';
import type { VaultPlan } from './evm/contracts/vaults.ts';
import type { EvmParts } from './evm/parts.ts';
import { type Ledger, type Movement, NATIVE } from './ledger.ts';
import { type Block, recordTransfer } from './pool.ts';
import type { RpcCall, RpcCaller, RpcOutcome } from './rpc-calls.ts';
import type { LiteSvmModule } from './solana/litesvm.ts';
import type { SolanaParts } from './solana/parts.ts';
import type { ChainStore } from './store.ts';

/** A token that exists on simulated chains from the start. */
export interface KnownToken {
  readonly caip2: string;
  readonly address: string;
  readonly symbol: string;
  readonly decimals: number;
}

/** The components that all simulated chains share. */
export interface World {
  readonly store: ChainStore;
  readonly clock: Clock;
  /**
   * The time after which a transaction is confirmed, as set by `--confirm-after`. If undefined, the next block
   * includes it.
   */
  readonly confirmAfterMs: number | undefined;
  /** If undefined, nothing is logged. */
  readonly log?: Log | undefined;
  /** If undefined, transactions have no faults. */
  readonly drawFault?: DrawTransactionFault | undefined;
  /** Loads the package that executes Solana transactions. By default, the installed package, if there is one. */
  readonly liteSvm?: (() => Promise<LiteSvmModule | undefined>) | undefined;
  knownTokens(): readonly KnownToken[];
  /** Returns the symbol of a chain's native asset, in lower case. */
  nativeSymbol(caip2: string): string;
  /** Returns the known interfaces of contracts, on all chains. */
  abis(): Promise<Abis>;
  /** Returns the vaults that are deployed when the chain is first used. Addresses are lower-case 0x hex. */
  plannedVaults(caip2: string): readonly VaultPlan[];
}

/** A deposit from the faucet or from a payer's account. */
export interface Deposit {
  readonly address: string;
  /** The account to debit, in the ledger's notation; undefined for the faucet. */
  readonly payer?: string | undefined;
  /**
   * The account that spends the payer's token allowance, in the ledger's notation. By default, the payer itself. EVM
   * chains only.
   */
  readonly spender?: string | undefined;
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  /** `decimals` and `symbol` are for a token that does not exist yet. */
  readonly decimals?: number | undefined;
  readonly symbol?: string | undefined;
}

export interface Funded {
  readonly hash: string;
  readonly rawBalance: bigint;
  readonly blockNumber: bigint;
}

/** Thrown when the chain cannot accept a deposit. `field` is the invalid member of the deposit. */
export class InvalidDepositError extends Error {
  readonly field: 'address' | 'tokenAddress' | 'rawAmount';

  constructor(field: InvalidDepositError['field'], message: string) {
    super(message);
    this.name = 'InvalidDepositError';
    this.field = field;
  }
}

/** A simulated chain with its internal controls. `fund` must run in a transaction of the store. */
export interface Simulated<C extends AnyChain = AnyChain> {
  readonly chain: C;
  readonly ledger: Ledger;
  /** Returns the number of decimals of an asset, or undefined for a token that does not exist. */
  decimalsOf(tokenAddress: string | null): number | undefined | Promise<number | undefined>;
  /**
   * Reads the symbol of a smart contract that a user has deployed on an EVM chain. Returns undefined if it has none.
   */
  symbolOf?(tokenAddress: string): Promise<string | undefined>;
  /**
   * Deposits an asset.
   *
   * @throws InvalidDepositError; RevertError if the payer's balance is too low.
   */
  fund(deposit: Deposit): Funded;
  /**
   * Deposits an asset from the faucet on a chain that forks a real one. Must not be called in a transaction of the
   * store.
   */
  fundContinued?(deposit: Deposit): Promise<Funded>;
  /** Processes the blocks that are due. Must be called before a transaction of the store that reads the chain. */
  catchUp(): Promise<void>;
  /** Returns the latest processed block. */
  head(): Block;
  /** Mines blocks immediately and returns the latest one. */
  mine(count: number): Promise<Block>;
  /** Closes what the chain has opened in addition to the store. */
  close?(): void;
  /** The components of an EVM chain. */
  readonly evm?: EvmParts;
  /** The components of a Solana chain. */
  readonly solana?: SolanaParts;
  /** Migrates the chain in a store of an older version, on chains that need it. */
  prepare?(): void;
  /** Runs a JSON-RPC method as a node of the chain would, on EVM chains and Solana. */
  rpc?(call: RpcCall, caller: RpcCaller): Promise<RpcOutcome>;
}

interface TransferRow {
  position: number;
  hash: string;
  sender: string;
  recipient: string;
  asset: string;
  amount: string;
  block_number: number;
  block_seconds: number;
}

/**
 * Returns transfers from or to an address, newest first. `text` converts an address of the ledger to the notation of
 * the chain type.
 */
export function transfersOf(
  { store }: World,
  caip2: string,
  { query, text }: { query: TransferQuery; text: (address: string) => string },
): readonly ChainTransfer[] {
  const { address, tokenAddresses, hash, beforePosition, limit } = query;
  const before = beforePosition === undefined ? Number.MAX_SAFE_INTEGER : Number(beforePosition);
  const assets = tokenAddresses.map((token) => token ?? NATIVE);
  const marks = assets.map(() => '?').join(', ');
  const rows = store.all<TransferRow>(
    `select * from transfers where caip2 = ? and (sender = ? or recipient = ?) and asset in (${marks})
       and position < ? and hash = coalesce(?, hash) order by position desc limit ?`,
    ...[caip2, address, address, ...assets, before, hash ?? null, limit],
  );
  return rows.map((row) => toTransfer(row, text));
}

/** Returns the movements of a transaction, or undefined while no block includes it. */
export function movementsOf(
  { store }: World,
  caip2: string,
  { hash, text }: { hash: string; text: (address: string) => string },
): TransactionMovements | undefined {
  const included = store.first<{ block_number: number }>(
    "select block_number from transactions where caip2 = ? and hash = ? and state in ('included', 'reverted')",
    ...[caip2, hash],
  );
  if (included === undefined) return undefined;
  const rows = store.all<TransferRow>(
    'select * from transfers where caip2 = ? and hash = ? order by position',
    ...[caip2, hash],
  );
  return {
    blockNumber: BigInt(included.block_number),
    movements: rows.map((row) => ({
      token: row.asset === NATIVE ? null : text(row.asset),
      from: text(row.sender),
      to: text(row.recipient),
      rawAmount: BigInt(row.amount),
    })),
  };
}

/** Returns all transfers on the chain after a position, to any recipient. */
export function transfersAfter(
  { store }: World,
  caip2: string,
  { reading, text }: { reading: TransferReading; text: (address: string) => string },
): TransferPage {
  const { after, limit } = reading;
  const rows = store.all<TransferRow>(
    'select * from transfers where caip2 = ? and position > ? order by position limit ?',
    ...[caip2, Number(after ?? 0), limit],
  );
  const last = rows.at(-1);
  return {
    transfers: rows.map((row) => toTransfer(row, text)),
    position: last === undefined ? after : String(last.position),
    hasMore: rows.length === limit,
  };
}

function toTransfer(row: TransferRow, text: (address: string) => string): ChainTransfer {
  return {
    hash: row.hash,
    sender: text(row.sender),
    recipient: text(row.recipient),
    tokenAddress: row.asset === NATIVE ? null : text(row.asset),
    rawAmount: BigInt(row.amount),
    blockNumber: BigInt(row.block_number),
    blockTimestampSeconds: row.block_seconds,
    position: String(row.position),
    key: String(row.position),
  };
}

/** Registers a token, unless it is already registered. For a known token, its own decimals and symbol are used. */
export function registerToken(
  world: World,
  caip2: string,
  token: { address: string; decimals: number; symbol: string; program: string | null },
): void {
  const known = knownToken(world, caip2, token.address);
  world.store.run(
    'insert or ignore into tokens values (?, ?, ?, ?, ?)',
    caip2,
    token.address,
    known?.decimals ?? token.decimals,
    known?.symbol ?? token.symbol,
    token.program,
  );
}

/** Finds a token that exists from the start. Returns undefined for any other token. */
export function knownToken({ knownTokens }: World, caip2: string, address: string): KnownToken | undefined {
  return knownTokens().find(
    (candidate) => candidate.caip2 === caip2 && sameAddress(candidate.address, address),
  );
}

// Compares addresses. Case is ignored only for EVM addresses, which start with 0x.
function sameAddress(left: string, right: string): boolean {
  return left.startsWith('0x') ? left.toLowerCase() === right.toLowerCase() : left === right;
}

/** Adds a deposit to the list of transfers and returns its hash. The caller must update the ledger. */
export function recordDeposit(
  { store }: World,
  caip2: string,
  deposit: Movement & { hashOf: (text: string) => string; block: Block },
): string {
  store.run('update chains set deposits = deposits + 1 where caip2 = ?', caip2);
  const { deposits } = store.first<{ deposits: number }>(
    'select deposits from chains where caip2 = ?',
    caip2,
  )!;
  const hash = deposit.hashOf(`deposit ${deposits} on ${caip2}`);
  recordTransfer(store, caip2, { ...deposit, hash });
  return hash;
}
