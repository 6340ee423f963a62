import { ApiError, invalidField } from '../../../errors.ts';
import type {
  CreateWalletAutomationRequest,
  UpdateWalletAutomationRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import { AttachmentEntity } from '../../access/automations/attachment.entity.ts';
import { AutomationEntity, type StoredAutomation } from '../../access/automations/automation.entity.ts';
import { findAutomationForUpdate } from '../../access/automations/find-automation.ts';
import { resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { requireOwner } from '../../access/owners/require-owner.ts';
import { resolveConfig } from './resolve-config.ts';

/** CHOICE: the most automations of an app. */
const MAX_AUTOMATIONS = 100;

/**
 * Creates an enabled automation. It acts on nothing until it is attached to a wallet.
 *
 * @throws ApiError invalid_data for an owner, chain, asset or vault that does not exist, and for a trigger other than
 * the asset of the vault; invalid_request when the app has the most automations already.
 */
export async function createAutomation(
  context: OperationContext,
  input: CreateWalletAutomationRequest,
): Promise<StoredAutomation> {
  await requireBelowLimit(context);
  const automation = context.em.create(AutomationEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    name: textOf(input.name) ?? null,
    ownerId: (await resolveOwner(context, input)) ?? null,
    ...{ isEnabled: 1, isManaged: 0 },
    config: await resolveConfig(context, input.config),
    createdAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  });
  await context.em.flush();
  return automation;
}

/** Serializes concurrent creations in one app, so that the limit holds. */
async function requireBelowLimit(context: OperationContext): Promise<void> {
  await lockName(context.em, 'automations', `automations:${context.app.id}`);
  const count = await context.em.count(AutomationEntity, { appId: context.app.id, isManaged: 0 });
  if (count >= MAX_AUTOMATIONS) {
    throw new ApiError(
      'invalid_request',
      `expected at most ${MAX_AUTOMATIONS} automations; delete one first`,
    );
  }
}

/**
 * Changes an automation for all later deposits. Requires the current owner's authorization.
 *
 * @throws ApiError not_found; what `requireOwner` throws; invalid_data.
 */
export async function updateAutomation(
  context: OperationContext,
  id: string,
  change: UpdateWalletAutomationRequest,
): Promise<StoredAutomation> {
  const automation = await findAutomationForUpdate(context, id);
  await requireOwner(context, { ownerId: automation.ownerId });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const ownerId = await resolveOwner(context, change);
  const name = textOf(change.name);
  if (ownerId !== undefined) automation.ownerId = ownerId;
  if (name !== undefined) automation.name = name;
  if (change.enabled !== undefined) automation.isEnabled = change.enabled ? 1 : 0;
  if (change.config !== undefined) automation.config = await resolveConfig(context, change.config);
  automation.updatedAtMs = context.nowMs;
  await context.em.flush();
  return automation;
}

/**
 * Deletes an automation and detaches it from every wallet. Its executions stay.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function deleteAutomation(context: OperationContext, id: string): Promise<void> {
  const automation = await findAutomationForUpdate(context, id);
  await requireOwner(context, { ownerId: automation.ownerId });
  await context.em.nativeDelete(AttachmentEntity, { automationId: id });
  await context.em.remove(automation).flush();
}

function textOf(name: string | null | undefined): string | null | undefined {
  if (typeof name === 'string' && !name.isWellFormed()) {
    throw invalidField('/name', 'must be text without halves of surrogate pairs');
  }
  return name;
}
