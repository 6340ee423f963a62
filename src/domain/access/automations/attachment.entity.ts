import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { SwapAttachmentParams } from '../../../generated/schemas.ts';
import { jsonText } from '../../../storage/json-text.ts';

/** The consent of a wallet's owner that an automation acts on the wallet. */
export const AttachmentEntity = defineEntity({
  name: 'AutomationAttachment',
  tableName: 'wallet_automation_attachments',
  properties: {
    id: p.text().primary(),
    walletId: p.text(),
    automationId: p.text(),
    /** As given. */
    params: jsonText<SwapAttachmentParams>().strictNullable(),
    /** The owner of the wallet who agreed; null if it had none. */
    agreedById: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'wallet_automation_attachments_of_wallet', properties: ['walletId', 'automationId'] }],
  indexes: [{ name: 'wallet_automation_attachments_by_automation', properties: ['automationId'] }],
});

export type StoredAttachment = InferEntity<typeof AttachmentEntity>;
