import type { SqlEntityManager } from '@mikro-orm/sql';
import { AttachmentEntity } from './attachment.entity.ts';
import { AutomationEntity } from './automation.entity.ts';

/**
 * Detaches everything from a wallet, in the transaction that exports or archives it or changes its owner, and ends the
 * deposit addresses that lead to it, in that of the last two.
 *
 * CHOICE: the consent was given by the owner from before, for a wallet that only this server could use. An exported
 * wallet can still receive what other addresses convert for it.
 */
export async function endAttachments(
  em: SqlEntityManager,
  walletId: string,
  { isExport = false }: { readonly isExport?: boolean } = {},
): Promise<void> {
  const ended = await em.find(AttachmentEntity, {
    $or: [{ walletId }, ...(isExport ? [] : [{ destinationWalletId: walletId }])],
  });
  if (ended.length === 0) return;
  await em.nativeDelete(AttachmentEntity, { id: { $in: ended.map(({ id }) => id) } });
  await em.nativeDelete(AutomationEntity, {
    id: { $in: ended.map(({ automationId }) => automationId) },
    isManaged: 1,
  });
}
