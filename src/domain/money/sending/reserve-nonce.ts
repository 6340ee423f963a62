import type { OperationContext } from '../../../operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { releasedStatuses } from '../transactions/transaction-state.ts';

type NonceContext = Pick<OperationContext, 'em' | 'nowMs'>;

/** An account on one chain. */
export interface Account {
  readonly caip2: string;
  /** The wallet's address as stored: wallets of several apps may hold the same key. */
  readonly address: string;
}

/** How far behind a chain's count may be when it is read: another node may not have the newest block yet. */
const LAG_MS = 10 * 60_000;

/**
 * The nonce of the account's next transaction, held against every other request until this transaction ends: the
 * lowest one that neither the chain counts nor a transaction of ours holds. A transaction that the chain refused leaves
 * its nonce to the next one, so that those behind it do not wait for ever.
 *
 * @param pendingCount what the chain counts as sent, those in its pool included.
 */
export async function reserveNonce(
  context: NonceContext,
  account: Account,
  pendingCount: bigint,
): Promise<number> {
  await lockName(context.em, `nonce:${account.caip2}:${account.address}`);
  return findNonce(context, account, pendingCount);
}

/** The same without holding it. */
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
    // What has long been settled is counted by the chain, unless the chain was begun anew, as local ones are.
    .where((where) =>
      where.or([where('next_check_at_ms', 'is not', null), where('updated_at_ms', '>', nowMs - LAG_MS)]),
    )
    .execute();
  const held = new Set(rows.map(({ nonce }) => nonce));
  let nonce = Number(pendingCount);
  while (held.has(nonce)) nonce += 1;
  return nonce;
}
