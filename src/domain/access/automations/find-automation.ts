import { invalidQuery, notFound } from '../../../errors.ts';
import type { WalletAutomationResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { AttachmentEntity } from './attachment.entity.ts';
import { AutomationEntity, type StoredAutomation } from './automation.entity.ts';

type AutomationContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * An automation of the app.
 *
 * @throws ApiError not_found
 */
export async function findAutomation({ app, em }: AutomationContext, id: string): Promise<StoredAutomation> {
  const automation = await em.findOne(AutomationEntity, { id, appId: app.id, isManaged: 0 });
  if (automation === null) throw notFound('Automation');
  return automation;
}

/**
 * An automation that is about to change, locked until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findAutomationForUpdate(
  { app, em }: AutomationContext,
  id: string,
): Promise<StoredAutomation> {
  const automation = await em.findOne(AutomationEntity, { id, appId: app.id, isManaged: 0 }, lockForUpdate);
  if (automation === null) throw notFound('Automation');
  return automation;
}

/**
 * One page of the app's automations, newest first.
 *
 * CHOICE: a `wallet_id` that no wallet has gives an empty list, as other filters do.
 *
 * @throws ApiError invalid_data for a cursor of no automation.
 */
export async function listAutomations(
  { app, em }: AutomationContext,
  options: { cursor?: string | undefined; limit?: number | undefined; walletId?: string | undefined },
): Promise<{ automations: StoredAutomation[]; nextCursor: string | null }> {
  const { cursor, walletId, limit = MAX_PAGE } = options;
  const after =
    cursor === undefined
      ? undefined
      : await em.findOne(AutomationEntity, { id: cursor, appId: app.id, isManaged: 0 });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const attached =
    walletId === undefined
      ? undefined
      : await em.find(AttachmentEntity, { walletId, destinationWalletId: null }, { limit: MAX_ATTACHED });
  const { page, nextCursor } = await findPage(
    em,
    AutomationEntity,
    {
      appId: app.id,
      isManaged: 0,
      ...(attached && { id: { $in: attached.map(({ automationId }) => automationId) } }),
    },
    { after, limit },
  );
  return { automations: page, nextCursor };
}

/** CHOICE: the most automations that are attached to one wallet at a time, and the most routes that lead to one. */
export const MAX_ATTACHED = 20;

/** An automation in wire form. */
export function automationView(automation: StoredAutomation): WalletAutomationResponse {
  return {
    id: automation.id,
    app_id: automation.appId,
    name: automation.name,
    owner_id: automation.ownerId,
    status: automation.isEnabled === 1 ? 'enabled' : 'disabled',
    config: automation.config,
    created_at: new Date(automation.createdAtMs).toISOString(),
    updated_at: new Date(automation.updatedAtMs).toISOString(),
  };
}
