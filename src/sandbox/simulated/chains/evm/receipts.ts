import { readWithBigints, writeWithBigints } from '../ledger.ts';
import type { Block } from '../pool.ts';
import type { EvmLog } from './interpreter.ts';
import type { EvmState } from './state.ts';

/** What a node keeps of an included transaction. Addresses are lower-case 0x hex. */
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
  /** The contract that the transaction created. */
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

/** Stores the receipt of the next transaction of a block. Call it in a transaction of the store. */
export function storeReceipt({ world: { store }, caip2 }: EvmState, receipt: NewReceipt): void {
  const last = store.first<{ position: number; next_log: number }>(
    `select position, first_log + logs as next_log from evm_receipts
     where caip2 = ? and block_number = ? order by position desc limit 1`,
    ...[caip2, receipt.block.number],
  );
  store.run(
    'insert or replace into evm_receipts values (?, ?, ?, ?, ?, ?, ?)',
    ...[caip2, receipt.hash, receipt.block.number, (last?.position ?? -1) + 1, last?.next_log ?? 0],
    ...[receipt.logs.length, writeWithBigints(receipt)],
  );
}

export function findReceipt({ world: { store }, caip2 }: EvmState, hash: string): Receipt | undefined {
  const row = store.first<ReceiptRow>(
    'select content, position, first_log from evm_receipts where caip2 = ? and hash = ?',
    ...[caip2, hash],
  );
  return row && toReceipt(row);
}

/** The receipts of some blocks in order, at most `limit`. */
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

function toReceipt({ content, position, first_log: firstLog }: ReceiptRow): Receipt {
  return { ...(readWithBigints(content) as NewReceipt), index: position, firstLog };
}
