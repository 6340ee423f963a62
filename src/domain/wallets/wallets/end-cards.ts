import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

// HOT: runs in the transactions that change wallets, which go through Kysely (bench `sqlite`, `postgres`).

/**
 * Cancels the cards that spend from a wallet, in the transaction that archives it or changes its owner. A job cancels
 * them at their issuers.
 *
 * CHOICE: the user got the cards as the wallet's owner. What the owner approved on chain stays approved, but no card is
 * left that could use it.
 */
export async function endCards(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  walletId: string,
): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('cards')
    .set({ status: 'canceled', next_check_at_ms: nowMs })
    .where('wallet_id', '=', walletId)
    .where('status', '<>', 'canceled')
    .execute();
}
