import type { OperationContext } from '../../../operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { releasedStatuses } from '../transactions/transaction-state.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

type NonceContext = Pick<OperationContext, 'em' | 'nowMs'>;

/** An account on one chain. */
export interface Account {
  readonly caip2: string;
  /**
   * The stored wallet address. Wallets of several apps may hold the same key, so the address identifies the account.
   */
  readonly address: string;
}

/** How stale a chain's transaction count may be: another node may not have the latest block yet. */
const LAG_MS = 10 * 60_000;

/**
 * Reserves the nonce of the account's next transaction until the database transaction ends: the lowest nonce that
 * neither the chain nor one of our transactions has used. A transaction that the chain refused frees its nonce, so
 * that later ones are not stuck behind the gap.
 *
 * @param pendingCount the chain's transaction count, including its mempool.
 */
export async function reserveNonce(
  context: NonceContext,
  account: Account,
  pendingCount: bigint,
): Promise<number> {
  await lockName(context.em, `nonce:${account.caip2}:${account.address}`);
  return findNonce(context, account, pendingCount);
}

/** The same nonce, without reserving it. */
export async function findNonce(
  { em, nowMs }: NonceContext,
  { caip2, address }: Account,
  pendingCount: bigint,
): Promise<number> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('transactions')
    .select('nonce')
    .where('caip2', '=', caip2)
    .where('sender', '=', address)
    .where('nonce', '>=', Number(pendingCount))
    .where('status', 'not in', releasedStatuses)
    // The chain already counts transactions that settled long ago, unless it was reset, as local chains are.
    .where((where) =>
      where.or([where('next_check_at_ms', 'is not', null), where('updated_at_ms', '>', nowMs - LAG_MS)]),
    )
    .execute();
  const held = new Set(rows.map(({ nonce }) => nonce));
  let nonce = Number(pendingCount);
  while (held.has(nonce)) nonce += 1;
  return nonce;
}
