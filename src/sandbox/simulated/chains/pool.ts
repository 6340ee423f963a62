import type { ChainStatus } from '../../../ports/chains.ts';
import type { DrawTransactionFault } from '../../../ports/requests.ts';
import { type Movement, readWithBigints, writeWithBigints } from './ledger.ts';
import type { ChainStore } from './store.ts';

/** An accepted transaction with its execution plan. */
export interface PoolEntry<Plan> {
  readonly id: number;
  readonly hash: string;
  readonly sender: string;
  /** Selects an independent sequence of nonces. '' is the default sequence. */
  readonly lane: string;
  readonly nonce: number | undefined;
  readonly plan: Plan;
  readonly dueMs: number;
  /** Set when a reorganization abandons the block that first includes the transaction. */
  readonly reorganization?: Reorganization | undefined;
}

interface Reorganization {
  /** The number of later blocks after which the block is abandoned. */
  readonly blocks: number;
  /** The block that first includes the transaction and is then abandoned. Undefined before it is produced. */
  readonly abandonedBlock: number | undefined;
}

/** A transaction that enters a pool. */
interface NewEntry<Plan> extends Omit<PoolEntry<Plan>, 'id' | 'reorganization'> {
  readonly receivedMs: number;
  /** The addresses that have signed it. By default, the sender. */
  readonly signers?: readonly string[];
}

/** The latest block of a chain, and which blocks are final. */
interface Head {
  head(): Block;
  isFinal(blockNumber: number): boolean;
}

export interface Block {
  readonly number: number;
  readonly seconds: number;
}

/** The result of executing a transaction. */
export interface Execution {
  readonly fee: bigint;
  /** The revert reason; undefined if the execution succeeded. */
  readonly failure: string | undefined;
  readonly movements: readonly Movement[];
}

interface TransactionRow {
  id: number;
  hash: string;
  sender: string;
  lane: string;
  nonce: number | null;
  plan: string;
  state: 'pending' | 'included' | 'reverted' | 'replaced' | 'dropped';
  due_ms: number;
  block_number: number | null;
  block_seconds: number | null;
  fee: string | null;
  reason: string | null;
  replaced_by: string | null;
  abandoned_after: number | null;
}

/** The transactions of one chain, pending and included. */
export interface Pool<Plan> {
  add(entry: NewEntry<Plan>): void;
  isKnown(hash: string): boolean;
  isPending(hash: string): boolean;
  pendingCount(): number;
  senderOf(hash: string): string | undefined;
  /** Finds a transaction, whether pending or included. Returns undefined for an unknown one. */
  find(hash: string): PoolEntry<Plan> | undefined;
  waiting(sender: string, lane: string): readonly PoolEntry<Plan>[];
  /** Returns the pending transactions that are due by `untilMs`, in order of arrival. */
  due(untilMs: number): readonly PoolEntry<Plan>[];
  /** Returns the times from `fromMs` to `untilMs` at which pending transactions become due, in order. */
  dueTimes(fromMs: number, untilMs: number): readonly number[];
  include(entry: PoolEntry<Plan>, block: Block, execution: Execution): void;
  /** Records that a block includes an entry until it is abandoned. The entry stays pending. */
  includeForNow(entry: PoolEntry<Plan>, block: Block, execution: Execution): void;
  replace(hash: string, byHash: string | null): void;
  drop(hash: string): void;
  /** Returns the hash of the included transaction that has used this nonce. Undefined if none has. */
  ofNonce(sender: string, lane: string, nonce: number): string | undefined;
  /** Returns the status of a transaction, or undefined for an unknown one. */
  status(hash: string, head: Head): ChainStatus | undefined;
}

/**
 * Opens the pool of one chain. A dropped transaction may be broadcast again.
 *
 * @param drawFault decides which fault a transaction gets. By default, none.
 */
export function makePool<Plan>(
  store: ChainStore,
  caip2: string,
  drawFault: DrawTransactionFault = () => undefined,
): Pool<Plan> {
  const rowOf = (hash: string) =>
    store.first<TransactionRow>('select * from transactions where caip2 = ? and hash = ?', caip2, hash);
  const setState = (hash: string, state: TransactionRow['state'], replacedBy: string | null) =>
    store.run(
      'update transactions set state = ?, replaced_by = ? where caip2 = ? and hash = ?',
      ...[state, replacedBy, caip2, hash],
    );
  return {
    add({ hash, sender, signers = [sender], lane, nonce, plan, receivedMs, dueMs }) {
      const fault = drawFault({ caip2, signers });
      const isReverted = fault?.effect === 'revert';
      const delayMs = fault?.effect === 'delay' ? fault.delayMs : 0;
      store.run("delete from transactions where caip2 = ? and hash = ? and state = 'dropped'", caip2, hash);
      store.run(
        `insert into transactions
           (caip2, hash, sender, lane, nonce, plan, state, received_ms, due_ms, abandoned_after)
         values (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?)`,
        ...[caip2, hash, sender, lane, nonce ?? null],
        ...[writeWithBigints(isReverted ? { ...plan, sentinel: 'reverted' } : plan), receivedMs],
        ...[dueMs + delayMs, fault?.effect === 'reorganization' ? fault.blocks : null],
      );
      if (fault?.effect === 'drop') setState(hash, 'dropped', null);
    },
    isKnown: (hash) => {
      const row = rowOf(hash);
      return row !== undefined && row.state !== 'dropped';
    },
    senderOf: (hash) => rowOf(hash)?.sender,
    find: (hash) => {
      const row = rowOf(hash);
      return row && toEntry<Plan>(row);
    },
    isPending: (hash) => rowOf(hash)?.state === 'pending',
    pendingCount: () =>
      store.first<{ count: number }>(
        "select count(*) as count from transactions where caip2 = ? and state = 'pending'",
        caip2,
      )?.count ?? 0,
    waiting: (sender, lane) =>
      store
        .all<TransactionRow>(
          `select * from transactions where caip2 = ? and sender = ? and lane = ? and state = 'pending' order by nonce`,
          ...[caip2, sender, lane],
        )
        .map((row) => toEntry<Plan>(row)),
    due: (untilMs) =>
      store
        .all<TransactionRow>(
          `select * from transactions where caip2 = ? and state = 'pending' and due_ms <= ? order by due_ms, id`,
          ...[caip2, untilMs],
        )
        .map((row) => toEntry<Plan>(row)),
    dueTimes: (fromMs, untilMs) =>
      store
        .all<{ due_ms: number }>(
          `select distinct due_ms from transactions
           where caip2 = ? and state = 'pending' and due_ms between ? and ? order by due_ms`,
          ...[caip2, fromMs, untilMs],
        )
        .map(({ due_ms: dueMs }) => dueMs),
    include: (entry, block, execution) => include(store, caip2, { entry, block, execution }),
    includeForNow: ({ id }, block, { fee, failure }) =>
      store.run(
        'update transactions set block_number = ?, block_seconds = ?, fee = ?, reason = ? where id = ?',
        ...[block.number, block.seconds, String(fee), failure ?? null, id],
      ),
    replace: (hash, byHash) => setState(hash, 'replaced', byHash),
    drop: (hash) => setState(hash, 'dropped', null),
    ofNonce: (sender, lane, nonce) =>
      store.first<{ hash: string }>(
        `select hash from transactions
         where caip2 = ? and sender = ? and lane = ? and nonce = ? and state in ('included', 'reverted')`,
        ...[caip2, sender, lane, nonce],
      )?.hash,
    status: (hash, head) => {
      const row = rowOf(hash);
      return row && statusOf(row, head);
    },
  };
}

function include<Plan>(
  store: ChainStore,
  caip2: string,
  { entry, block, execution }: { entry: PoolEntry<Plan>; block: Block; execution: Execution },
): void {
  const { fee, failure, movements } = execution;
  store.run(
    `update transactions set state = ?, block_number = ?, block_seconds = ?, fee = ?, reason = ? where id = ?`,
    ...[failure === undefined ? 'included' : 'reverted', block.number, block.seconds, String(fee)],
    ...[failure ?? null, entry.id],
  );
  for (const movement of movements) recordTransfer(store, caip2, { ...movement, hash: entry.hash, block });
}

/** Adds a transfer to the chain's list of transfers. */
export function recordTransfer(
  store: ChainStore,
  caip2: string,
  transfer: Movement & { hash: string; block: Block },
): void {
  const { hash, sender, recipient, asset, amount, block } = transfer;
  store.run(
    `insert into transfers (caip2, hash, sender, recipient, asset, amount, block_number, block_seconds)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[caip2, hash, sender, recipient, asset, String(amount), block.number, block.seconds],
  );
}

function statusOf(row: TransactionRow, head: Head): ChainStatus {
  const isAbandoned = (row.block_number ?? 0) + (row.abandoned_after ?? 0) <= head.head().number;
  if (row.state === 'pending' && (row.block_number === null || isAbandoned)) return { kind: 'pending' };
  if (row.state === 'replaced') return { kind: 'replaced', byHash: row.replaced_by ?? undefined };
  if (row.state === 'dropped') return { kind: 'unknown', isExpired: false };
  const block = row.block_number ?? 0;
  const inclusion = {
    isFinal: row.state !== 'pending' && head.isFinal(block),
    blockNumber: BigInt(block),
    blockTimestampSeconds: row.block_seconds ?? 0,
    feePaid: BigInt(row.fee ?? 0),
  };
  if (row.reason === null) return { kind: 'included', ...inclusion };
  return { kind: 'reverted', reason: row.reason, ...inclusion };
}

function toEntry<Plan>(row: TransactionRow): PoolEntry<Plan> {
  return {
    id: row.id,
    hash: row.hash,
    sender: row.sender,
    lane: row.lane,
    nonce: row.nonce ?? undefined,
    plan: readWithBigints(row.plan) as Plan,
    dueMs: row.due_ms,
    reorganization:
      row.abandoned_after === null
        ? undefined
        : { blocks: row.abandoned_after, abandonedBlock: row.block_number ?? undefined },
  };
}
