import type { SqlEntityManager } from '@mikro-orm/sql';
import { AttachmentEntity } from './attachment.entity.ts';

/**
 * Detaches everything from a wallet, in the transaction that exports or archives it or changes its owner.
 *
 * CHOICE: the consent was given by the owner from before, for a wallet that only this server could use.
 */
export async function endAttachments(em: SqlEntityManager, walletId: string): Promise<void> {
  await em.nativeDelete(AttachmentEntity, { walletId });
}
