import type { OperationContext } from '../../../operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { membershipsOf } from '../../access/key-quorums/list-memberships.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { WalletRecoveryEntity } from './wallet-recovery.entity.ts';

// HOT: the `wallets` table is read by Kysely, as everywhere (bench `sqlite`, `postgres`).

/**
 * Records `wallet.recovered`, once for each wallet, when its recovery user gets a key that signs for it. Wallets that
 * are archived or have another owner by now are left out: the key does not cover them.
 */
export async function noteRecovery(context: OperationContext, userId: string): Promise<void> {
  const { app, em, nowMs } = context;
  const waiting = await em.find(
    WalletRecoveryEntity,
    { appId: app.id, userId, recoveredAtMs: null },
    { ...lockForUpdate, orderBy: { walletId: 'asc' } },
  );
  if (waiting.length === 0) return;
  const database = em.getKysely<Tables>();
  const covered = await database
    .selectFrom('wallets')
    .select(['id', 'address'])
    .where(
      'id',
      'in',
      waiting.map(({ walletId }) => walletId),
    )
    .where('archived_at_ms', 'is', null)
    .where('owner_id', 'in', membershipsOf(database, { kind: 'user', member: userId }))
    .orderBy('id')
    .execute();
  for (const wallet of covered) {
    const recovery = waiting.find(({ walletId }) => walletId === wallet.id);
    if (recovery === undefined) continue;
    recovery.recoveredAtMs = nowMs;
    await recordEvent(context, {
      appId: app.id,
      type: 'wallet.recovered',
      payload: { user_id: userId, wallet_id: wallet.id, wallet_address: wallet.address },
    });
  }
  await em.flush();
}
