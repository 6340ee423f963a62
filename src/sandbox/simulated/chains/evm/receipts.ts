import { type Movement, readWithBigints, writeWithBigints } from '../ledger.ts';
import type { Block } from '../pool.ts';
import type { EvmState } from './state.ts';

/** An event that a smart contract emitted, in lower-case 0x hex. */
export interface EvmLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

// keccak256("Transfer(address,address,uint256)")
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

export function transferLog({ asset, sender, recipient, amount }: Movement): EvmLog {
  return { address: asset, topics: [TRANSFER_TOPIC, word(sender), word(recipient)], data: word(amount) };
}

function word(value: string | bigint): string {
  const hex = typeof value === 'string' ? value.slice(2) : value.toString(16);
  return `0x${hex.padStart(64, '0')}`;
}

/** A node's record of an included transaction. Addresses are lower-case 0x hex. */
export interface Receipt extends NewReceipt {
  /** The position of the transaction in its block. */
  readonly index: number;
  /** The position of its first log in its block. */
  readonly firstLog: number;
}

export interface NewReceipt {
  readonly hash: string;
  readonly block: Block;
  readonly sender: string;
  readonly recipient: string | null;
  /** The smart contract that the transaction created. */
  readonly contract: string | null;
  readonly gasUsed: bigint;
  readonly gasPrice: bigint;
  readonly isReverted: boolean;
  readonly logs: readonly EvmLog[];
}

interface ReceiptRow {
  readonly content: string;
  readonly position: number;
  readonly first_log: number;
}

/** Stores the receipt of the next transaction of a block. Must be called in a transaction of the store. */
export function storeReceipt(
  { world: { store }, caip2 }: EvmState,
  receipt: NewReceipt,
  reads: string | null = null,
): void {
  const last = store.first<{ position: number; next_log: number }>(
    `select position, first_log + logs as next_log from evm_receipts
     where caip2 = ? and block_number = ? order by position desc limit 1`,
    ...[caip2, receipt.block.number],
  );
  store.run(
    'insert or replace into evm_receipts values (?, ?, ?, ?, ?, ?, ?, ?)',
    ...[caip2, receipt.hash, receipt.block.number, (last?.position ?? -1) + 1, last?.next_log ?? 0],
    ...[receipt.logs.length, writeWithBigints(receipt), reads],
  );
}

export function findReceipt({ world: { store }, caip2 }: EvmState, hash: string): Receipt | undefined {
  const row = store.first<ReceiptRow>(
    'select content, position, first_log from evm_receipts where caip2 = ? and hash = ?',
    ...[caip2, hash],
  );
  return row && toReceipt(row);
}

/** Returns the state that a transaction has read. Returns undefined for deposits, and if it is unknown. */
export function findReads({ world: { store }, caip2 }: EvmState, hash: string): string | undefined {
  return (
    store.first<{ reads: string | null }>(
      'select reads from evm_receipts where caip2 = ? and hash = ?',
      ...[caip2, hash],
    )?.reads ?? undefined
  );
}

/** Returns the receipts of a range of blocks in order, at most `limit`. */
export function receiptsIn(
  { world: { store }, caip2 }: EvmState,
  { from, to, limit }: { from: number; to: number; limit: number },
): readonly Receipt[] {
  return store
    .all<ReceiptRow>(
      `select content, position, first_log from evm_receipts
       where caip2 = ? and block_number >= ? and block_number <= ? order by block_number, position limit ?`,
      ...[caip2, from, to, limit],
    )
    .map(toReceipt);
}

/** Returns the receipts after a position, in order. */
export function receiptsAfter(
  { world: { store }, caip2 }: EvmState,
  { block, index, upTo, limit }: { block: number; index: number; upTo: number; limit: number },
): readonly Receipt[] {
  return store
    .all<ReceiptRow>(
      `select content, position, first_log from evm_receipts
       where caip2 = ? and (block_number, position) > (?, ?) and block_number <= ?
       order by block_number, position limit ?`,
      ...[caip2, block, index, upTo, limit],
    )
    .map(toReceipt);
}

/** Returns the position of the latest transaction, or undefined if there is none. */
export function latestReceipt({
  world: { store },
  caip2,
}: EvmState): { block: number; index: number } | undefined {
  return store.first(
    `select block_number as block, position as "index" from evm_receipts
     where caip2 = ? order by block_number desc, position desc limit 1`,
    caip2,
  );
}

/** Returns the receipts before a position, newest first, at most `limit`. */
export function receiptsBefore(
  { world: { store }, caip2 }: EvmState,
  { before, limit }: { before: { block: number; index: number } | undefined; limit: number },
): readonly Receipt[] {
  const { block, index } = before ?? { block: Number.MAX_SAFE_INTEGER, index: 0 };
  return store
    .all<ReceiptRow>(
      `select content, position, first_log from evm_receipts
       where caip2 = ? and (block_number, position) < (?, ?)
       order by block_number desc, position desc limit ?`,
      ...[caip2, block, index, limit],
    )
    .map(toReceipt);
}

function toReceipt({ content, position, first_log: firstLog }: ReceiptRow): Receipt {
  return { ...(readWithBigints(content) as NewReceipt), index: position, firstLog };
}
