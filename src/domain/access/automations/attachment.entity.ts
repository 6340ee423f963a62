import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { CryptoDepositAddressRoute, SwapAttachmentParams } from '../../../generated/schemas.ts';
import { jsonText } from '../../../storage/json-text.ts';

/** A deposit address and its route, in wire form without the wallet. */
export type DepositRouteView = Omit<CryptoDepositAddressRoute, 'wallet_id'>;

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
    /** Of a crypto deposit account: the wallet that its deposits are for. */
    destinationWalletId: p.text().strictNullable(),
    /** Of a crypto deposit account: identifies the route among those of the destination. */
    routeKey: p.text().strictNullable(),
    /** Of a crypto deposit account: its address and route. */
    route: jsonText<DepositRouteView>().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  uniques: [
    { name: 'wallet_automation_attachments_of_wallet', properties: ['walletId', 'automationId'] },
    // INVARIANT: one address per route.
    {
      name: 'wallet_automation_attachments_of_route',
      properties: ['destinationWalletId', 'routeKey'],
      where: 'destination_wallet_id is not null',
    },
  ],
  indexes: [{ name: 'wallet_automation_attachments_by_automation', properties: ['automationId'] }],
});

export type StoredAttachment = InferEntity<typeof AttachmentEntity>;
