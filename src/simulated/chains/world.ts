import type { ChainTransfer, TransferQuery } from '../../ports/chain-transfers.ts';
import type { AnyChain } from '../../ports/chains.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Ledger, type Movement, NATIVE } from './ledger.ts';
import { type Block, recordTransfer } from './pool.ts';
import type { ChainStore } from './store.ts';

/** A token that simulated chains know from the start. */
export interface KnownToken {
  readonly caip2: string;
  readonly address: string;
  readonly symbol: string;
  readonly decimals: number;
}

/** What all simulated chains share. */
export interface World {
  readonly store: ChainStore;
  readonly clock: Clock;
  /** See `--confirm-after`: undefined waits for the next block. */
  readonly confirmAfterMs: number | undefined;
  /** Made when a chain is first asked. */
  knownTokens(): readonly KnownToken[];
}

/** What is given: out of nothing, or out of an account. */
export interface Deposit {
  readonly address: string;
  /** Whose it was, as the ledger writes addresses; undefined: nobody's. */
  readonly payer?: string | undefined;
  readonly tokenAddress: string | null;
  readonly rawAmount: bigint;
  /** Of a token never heard of. */
  readonly decimals?: number | undefined;
  readonly symbol?: string | undefined;
}

export interface Funded {
  readonly hash: string;
  readonly rawBalance: bigint;
  readonly blockNumber: bigint;
}

/** A deposit that the chain cannot take. `field` is the one of the deposit that is at fault. */
export class InvalidDepositError extends Error {
  readonly field: 'address' | 'tokenAddress' | 'rawAmount';

  constructor(field: InvalidDepositError['field'], message: string) {
    super(message);
    this.name = 'InvalidDepositError';
    this.field = field;
  }
}

/** A simulated chain and what only its maker does with it. */
export interface Simulated<C extends AnyChain = AnyChain> {
  readonly chain: C;
  readonly ledger: Ledger;
  /** Decimals of a token, or of the native asset; undefined: never heard of. */
  decimalsOf(tokenAddress: string | null): number | undefined;
  /**
   * Gives out an asset, inside a transaction of the store. Throws InvalidDepositError, and RevertError when a payer
   * holds less.
   */
  give(deposit: Deposit): Funded;
  /** The newest block, with everything that is due. Inside a transaction of the store. */
  head(): Block;
  /** Makes blocks now; the newest. */
  mine(count: number): Block;
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

/** The list of transfers of one chain. `text` writes an address of the ledger as the chain type does. */
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

/** Every transfer of the chain behind a position, oldest first. */
export function transfersAfter(
  { store }: World,
  caip2: string,
  {
    position,
    limit,
    text,
  }: { position: string | undefined; limit: number; text: (address: string) => string },
): readonly ChainTransfer[] {
  const rows = store.all<TransferRow>(
    'select * from transfers where caip2 = ? and position > ? order by position limit ?',
    ...[caip2, Number(position ?? 0), limit],
  );
  return rows.map((row) => toTransfer(row, text));
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
  };
}

/** Registers a token unless it is known; its decimals and symbol. */
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

/** What is known of a token from before anybody used it. */
export function knownToken({ knownTokens }: World, caip2: string, address: string): KnownToken | undefined {
  return knownTokens().find(
    (candidate) => candidate.caip2 === caip2 && sameAddress(candidate.address, address),
  );
}

// Only EVM addresses are the same in another case, and only they begin with 0x here.
function sameAddress(left: string, right: string): boolean {
  return left.startsWith('0x') ? left.toLowerCase() === right.toLowerCase() : left === right;
}

/** Enters a deposit into the list of transfers; the ledger was changed before. */
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
