import type { ExchangeStatus } from '../../ports/exchange.ts';
import type { ChainStore } from '../chains/store.ts';

/** What was quoted, and what came of it. Accounts of the ledger are in its spelling, recipients as asked. */
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

/** A deposit as the source chain has it. */
export interface SeenDeposit {
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

/** Writes down how an order ended, with the deposit that it was for: no other order takes the same one. */
export function endOrder(
  store: ChainStore,
  order: OrderRow,
  { depositHash, end }: { depositHash: string; end: Exclude<ExchangeStatus, { kind: 'waiting' }> },
): void {
  store.run(
    'update exchange_orders set state = ?, deposit_hash = ?, hash = ?, reason = ? where id = ?',
    ...[end.kind, depositHash, end.hash, end.kind === 'refunded' ? end.reason : null, order.id],
  );
}

/** Where an order stands; undefined while it is open. */
export function endOf({ state, hash, reason }: OrderRow): ExchangeStatus | undefined {
  if (state === 'open') return undefined;
  return state === 'paid'
    ? { kind: 'paid', hash: hash ?? '' }
    : { kind: 'refunded', hash: hash ?? '', reason: reason ?? '' };
}

/** What the order's payer has paid to `recipient` by a transaction, if it is in a block. */
export function seeDeposit(
  store: ChainStore,
  order: OrderRow,
  { hash, recipient, asset }: { hash: string; recipient: string; asset: string },
): SeenDeposit | undefined {
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
