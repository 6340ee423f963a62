import { readWithBigints, writeWithBigints } from './ledger.ts';
import type { Sentinel } from './sentinels.ts';
import type { ChainStore } from './store.ts';

/** How to change the outcome of a transaction. `drop`: the pool loses it, and it may then be broadcast again. */
export type TransactionEffect = 'drop' | 'replace' | 'revert';

const sentinels = { replace: 'replaced', revert: 'reverted' } as const satisfies Record<string, Sentinel>;

/**
 * Changes the outcome of a pending transaction. Returns false if no such transaction is waiting for its first block.
 */
export function steerPending(
  store: ChainStore,
  caip2: string,
  { hash, effect }: { readonly hash: string; readonly effect: TransactionEffect },
): boolean {
  const waiting = store.first<{ id: number; plan: string }>(
    `select id, plan from transactions
     where caip2 = ? and hash = ? and state = 'pending' and block_number is null`,
    ...[caip2, hash],
  );
  if (waiting === undefined) return false;
  const { id, plan } = waiting;
  if (effect === 'drop') {
    store.run("update transactions set state = 'dropped' where id = ?", id);
  } else {
    const steered = { ...(readWithBigints(plan) as object), sentinel: sentinels[effect] };
    store.run('update transactions set plan = ? where id = ?', writeWithBigints(steered), id);
  }
  return true;
}
