import { readWithBigints, writeWithBigints } from '../ledger.ts';
import type { Block } from '../pool.ts';
import type { ChainStore } from '../store.ts';
import type { TransactionError } from './failures.ts';

/** An account's balance of a token, before or after a transaction. */
export interface TokenBalance {
  readonly accountIndex: number;
  readonly mint: string;
  readonly owner: string;
  readonly program: string;
  readonly amount: bigint;
  readonly decimals: number;
}

/** The stored facts about an included transaction. Addresses are base58. */
export interface NewReceipt {
  readonly hash: string;
  readonly block: Block;
  /** The signed bytes in base64. */
  readonly wire: string;
  readonly error: TransactionError | null;
  readonly fee: bigint;
  readonly units: bigint;
  readonly logs: readonly string[];
  /** The lamports of all accounts of the transaction, in the order of the accounts. */
  readonly before: readonly bigint[];
  readonly after: readonly bigint[];
  readonly tokensBefore: readonly TokenBalance[];
  readonly tokensAfter: readonly TokenBalance[];
  readonly loaded: { readonly writable: readonly string[]; readonly readonly: readonly string[] };
  readonly inner: readonly {
    readonly index: number;
    readonly instructions: readonly {
      readonly program: number;
      readonly accounts: readonly number[];
      /** Base58. */
      readonly data: string;
      readonly height: number;
    }[];
  }[];
  /** `data` is base64. */
  readonly returned: { readonly program: string; readonly data: string } | null;
}

export interface Receipt extends NewReceipt {
  /** The position of the transaction in its block. */
  readonly index: number;
}

/** A position in the transactions of a chain. */
export interface Position {
  readonly block: number;
  readonly index: number;
}

interface ReceiptRow {
  readonly content: string;
  readonly position: number;
}

interface Place {
  readonly store: ChainStore;
  readonly caip2: string;
}

/**
 * Stores the receipt of the next transaction of a block.
 *
 * @param accounts the accounts that the transaction names.
 */
export function storeReceipt(
  { store, caip2 }: Place,
  receipt: NewReceipt,
  accounts: readonly string[],
): void {
  const { hash, block } = receipt;
  const last = store.first<{ position: number }>(
    'select position from solana_receipts where caip2 = ? and block_number = ? order by position desc limit 1',
    ...[caip2, block.number],
  );
  const position = (last?.position ?? -1) + 1;
  store.run(
    'insert or replace into solana_receipts values (?, ?, ?, ?, ?)',
    ...[caip2, hash, block.number, position, writeWithBigints(receipt)],
  );
  for (const address of accounts) {
    store.run(
      'insert into solana_mentions values (?, ?, ?, ?, ?)',
      ...[caip2, address, block.number, position, hash],
    );
  }
}

export function findReceipt({ store, caip2 }: Place, hash: string): Receipt | undefined {
  const row = store.first<ReceiptRow>(
    'select content, position from solana_receipts where caip2 = ? and hash = ?',
    ...[caip2, hash],
  );
  return row && toReceipt(row);
}

/** Returns the receipts after a position, in order. */
export function receiptsAfter(
  { store, caip2 }: Place,
  { block, index, upTo, limit }: Position & { readonly upTo: number; readonly limit: number },
): readonly Receipt[] {
  return store
    .all<ReceiptRow>(
      `select content, position from solana_receipts
       where caip2 = ? and (block_number, position) > (?, ?) and block_number <= ?
       order by block_number, position limit ?`,
      ...[caip2, block, index, upTo, limit],
    )
    .map(toReceipt);
}

/** Returns the receipts before a position, newest first. */
export function receiptsBefore(
  { store, caip2 }: Place,
  { before, limit }: { readonly before: Position | undefined; readonly limit: number },
): readonly Receipt[] {
  const { block, index } = before ?? { block: Number.MAX_SAFE_INTEGER, index: 0 };
  return store
    .all<ReceiptRow>(
      `select content, position from solana_receipts
       where caip2 = ? and (block_number, position) < (?, ?)
       order by block_number desc, position desc limit ?`,
      ...[caip2, block, index, limit],
    )
    .map(toReceipt);
}

/** Returns the hashes of a block's transactions, in order. */
export function hashesIn({ store, caip2 }: Place, block: number, limit: number): readonly string[] {
  return store
    .all<{ hash: string }>(
      'select hash from solana_receipts where caip2 = ? and block_number = ? order by position limit ?',
      ...[caip2, block, limit],
    )
    .map(({ hash }) => hash);
}

/** Returns the position of the latest transaction up to a block, or undefined if there is none. */
export function latestReceipt({ store, caip2 }: Place, upTo: number): Position | undefined {
  return store.first(
    `select block_number as block, position as "index" from solana_receipts
     where caip2 = ? and block_number <= ? order by block_number desc, position desc limit 1`,
    ...[caip2, upTo],
  );
}

/** Returns the hashes of transactions that name an address, newest first. */
export function mentionsBefore(
  { store, caip2 }: Place,
  address: string,
  { before, until, limit }: { before: Position; until: Position; limit: number },
): readonly string[] {
  return store
    .all<{ hash: string }>(
      `select hash from solana_mentions
       where caip2 = ? and address = ? and (block_number, position) < (?, ?) and (block_number, position) > (?, ?)
       order by block_number desc, position desc limit ?`,
      ...[caip2, address, before.block, before.index, until.block, until.index, limit],
    )
    .map(({ hash }) => hash);
}

function toReceipt({ content, position }: ReceiptRow): Receipt {
  return { ...(readWithBigints(content) as NewReceipt), index: position };
}
