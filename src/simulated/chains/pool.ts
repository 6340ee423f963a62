import type { ChainStatus } from '../../ports/chains.ts';
import { readWithBigints, writeWithBigints } from './bigint-json.ts';
import type { Movement } from './ledger.ts';
import type { ChainStore } from './store.ts';

/** An accepted transaction with its execution plan. */
export interface PoolEntry<Plan> {
  readonly id: number;
  readonly hash: string;
  readonly sender: string;
  /** Nonces are counted separately in each lane; '' is the default lane. */
  readonly lane: string;
  readonly nonce: number | undefined;
  readonly plan: Plan;
  readonly dueMs: number;
}

export interface Block {
  readonly number: number;
  readonly seconds: number;
}

/** The result of executing a transaction. */
export interface Execution {
  readonly fee: bigint;
  /** The revert reason; undefined when it succeeded. */
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
}

/** The transactions of one chain, pending and included. */
export interface Pool<Plan> {
  add(entry: Omit<PoolEntry<Plan>, 'id'> & { receivedMs: number }): void;
  isKnown(hash: string): boolean;
  waiting(sender: string, lane: string): readonly PoolEntry<Plan>[];
  /** Pending transactions due by `untilMs`, in order of arrival. */
  due(untilMs: number): readonly PoolEntry<Plan>[];
  include(entry: PoolEntry<Plan>, block: Block, execution: Execution): void;
  replace(hash: string, byHash: string | null): void;
  drop(hash: string): void;
  /** The hash of the included transaction with this nonce. */
  ofNonce(sender: string, lane: string, nonce: number): string | undefined;
  /** Undefined for an unknown transaction. `isFinal` takes a block number. */
  status(hash: string, isFinal: (block: number) => boolean): ChainStatus | undefined;
}

/** The pool of one chain. A dropped transaction may be broadcast again. */
export function makePool<Plan>(store: ChainStore, caip2: string): Pool<Plan> {
  const rowOf = (hash: string) =>
    store.first<TransactionRow>('select * from transactions where caip2 = ? and hash = ?', caip2, hash);
  const setState = (hash: string, state: TransactionRow['state'], replacedBy: string | null) =>
    store.run(
      'update transactions set state = ?, replaced_by = ? where caip2 = ? and hash = ?',
      ...[state, replacedBy, caip2, hash],
    );
  return {
    add({ hash, sender, lane, nonce, plan, receivedMs, dueMs }) {
      store.run("delete from transactions where caip2 = ? and hash = ? and state = 'dropped'", caip2, hash);
      store.run(
        `insert into transactions (caip2, hash, sender, lane, nonce, plan, state, received_ms, due_ms)
         values (?, ?, ?, ?, ?, ?, 'pending', ?, ?)`,
        ...[caip2, hash, sender, lane, nonce ?? null, writeWithBigints(plan), receivedMs, dueMs],
      );
    },
    isKnown: (hash) => {
      const row = rowOf(hash);
      return row !== undefined && row.state !== 'dropped';
    },
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
    include: (entry, block, execution) => include(store, caip2, { entry, block, execution }),
    replace: (hash, byHash) => setState(hash, 'replaced', byHash),
    drop: (hash) => setState(hash, 'dropped', null),
    ofNonce: (sender, lane, nonce) =>
      store.first<{ hash: string }>(
        `select hash from transactions
         where caip2 = ? and sender = ? and lane = ? and nonce = ? and state in ('included', 'reverted')`,
        ...[caip2, sender, lane, nonce],
      )?.hash,
    status: (hash, isFinal) => {
      const row = rowOf(hash);
      return row && statusOf(row, isFinal);
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

function statusOf(row: TransactionRow, isFinal: (block: number) => boolean): ChainStatus {
  if (row.state === 'pending') return { kind: 'pending' };
  if (row.state === 'replaced') return { kind: 'replaced', byHash: row.replaced_by ?? undefined };
  if (row.state === 'dropped') return { kind: 'unknown', isExpired: false };
  const block = row.block_number ?? 0;
  const inclusion = {
    isFinal: isFinal(block),
    blockNumber: BigInt(block),
    blockTimestampSeconds: row.block_seconds ?? 0,
    feePaid: BigInt(row.fee ?? 0),
  };
  if (row.state === 'included') return { kind: 'included', ...inclusion };
  return { kind: 'reverted', reason: row.reason ?? '', ...inclusion };
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
  };
}
