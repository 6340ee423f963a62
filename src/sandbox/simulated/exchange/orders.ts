import type { ExchangeStatus } from '../../../ports/exchange.ts';
import type { ChainStore } from '../chains/store.ts';

/** A quote and its outcome. `payer` is in the ledger's notation, `recipient` in the notation of the order. */
export interface OrderRow {
  readonly id: string;
  readonly source_caip2: string;
  readonly source_token: string | null;
  readonly payer: string;
  readonly destination_caip2: string;
  readonly destination_token: string | null;
  readonly recipient: string;
  readonly raw_input: string;
  readonly raw_output: string;
  readonly expires_seconds: number;
  readonly state: 'open' | 'paid' | 'refunded';
  readonly deposit_hash: string | null;
  readonly hash: string | null;
  readonly reason: string | null;
}

/** A deposit that a block of the source chain has included. */
export interface IncludedDeposit {
  readonly rawAmount: bigint;
  readonly blockNumber: number;
  readonly blockSeconds: number;
}

export function insertOrder(
  store: ChainStore,
  order: Omit<OrderRow, 'state' | 'deposit_hash' | 'hash' | 'reason'>,
): void {
  store.run(
    "insert into exchange_orders values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', null, null, null)",
    ...[order.id, order.source_caip2, order.source_token, order.payer, order.destination_caip2],
    ...[order.destination_token, order.recipient, order.raw_input, order.raw_output, order.expires_seconds],
  );
}

export function findOrder(store: ChainStore, id: string): OrderRow | undefined {
  return store.first<OrderRow>('select * from exchange_orders where id = ?', id);
}

/** Stores the outcome of an order with its deposit. A deposit can belong to only one order. */
export function closeOrder(
  store: ChainStore,
  order: OrderRow,
  { depositHash, outcome }: { depositHash: string; outcome: Exclude<ExchangeStatus, { kind: 'waiting' }> },
): void {
  store.run(
    'update exchange_orders set state = ?, deposit_hash = ?, hash = ?, reason = ? where id = ?',
    ...[outcome.kind, depositHash, outcome.hash, outcome.kind === 'refunded' ? outcome.reason : null],
    ...[order.id],
  );
}

/** Returns the outcome of an order, or undefined while it is open. */
export function outcomeOf({ state, hash, reason }: OrderRow): ExchangeStatus | undefined {
  if (state === 'open') return undefined;
  return state === 'paid'
    ? { kind: 'paid', hash: hash ?? '' }
    : { kind: 'refunded', hash: hash ?? '', reason: reason ?? '' };
}

/**
 * Finds the deposit of the order's payer to `recipient` in an included transaction. Returns undefined if there is
 * none.
 */
export function findDeposit(
  store: ChainStore,
  order: OrderRow,
  { hash, recipient, asset }: { hash: string; recipient: string; asset: string },
): IncludedDeposit | undefined {
  const rows = store.all<{ amount: string; block_number: number; block_seconds: number }>(
    `select amount, block_number, block_seconds from transfers
     where caip2 = ? and hash = ? and sender = ? and recipient = ? and asset = ?
       and not exists (select 1 from exchange_orders where source_caip2 = ? and deposit_hash = ?)`,
    ...[order.source_caip2, hash, order.payer, recipient, asset, order.source_caip2, hash],
  );
  const [first] = rows;
  return (
    first && {
      rawAmount: rows.reduce((sum, { amount }) => sum + BigInt(amount), 0n),
      blockNumber: first.block_number,
      blockSeconds: first.block_seconds,
    }
  );
}
