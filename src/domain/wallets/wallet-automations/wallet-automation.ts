import { readChainAddress } from '../../../engine/assets/addresses.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidField, invalidQuery, StaleReadError } from '../../../errors.ts';
import type {
  AttachedWalletAutomation,
  AttachWalletAutomationsRequest,
  DetachWalletAutomationsRequest,
  SwapAttachmentParams,
  WalletAutomationAttachmentResponse,
  WalletAutomationExecutionResponse,
  WalletAutomationExecutionStatus,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import {
  AttachmentEntity,
  AutomationEntity,
  ExecutionEntity,
  type StoredAttachment,
  type StoredAutomation,
  type StoredExecution,
} from '../../access/automations/automation.entity.ts';
import { MAX_ATTACHED } from '../../access/automations/automation.ts';
import { requireAuthorization } from '../../access/owners/require-authorization.ts';
import type { Tables } from '../../tables.ts';
import { findWallet } from '../wallets/find-wallet.ts';
import { type FoundWallet, WalletEntity, type WalletRow } from '../wallets/wallet.entity.ts';
import { changeAuthority } from '../wallets/wallet-keys.ts';

// KYSELY: joins attachments with their automations.

/**
 * Attaches automations to a wallet, so that they act on its later deposits. If the wallet has an owner, the owner must
 * sign. An automation that is already attached keeps its attachment and parameters.
 *
 * @throws ApiError not_found; what `requireAuthorization` throws; invalid_state for an imported or exported wallet;
 * invalid_data; invalid_request for more attachments than a wallet may have.
 */
export async function attachAutomations(
  context: OperationContext,
  walletId: string,
  { automation_ids: ids, params }: AttachWalletAutomationsRequest,
): Promise<WalletAutomationAttachmentResponse[]> {
  const wallet = await findWallet(context, walletId);
  const authorization = await requireAuthorization(context, { ownerId: wallet.owner_id });
  await lockWallet(context, wallet);
  if (wallet.imported_at_ms !== null || wallet.exported_at_ms !== null) {
    const what = wallet.imported_at_ms === null ? 'exported' : 'imported';
    throw new ApiError('invalid_state', `automations cannot be attached to a wallet that was ${what}`);
  }
  const automations = await automationsOf(context, ids);
  for (const automation of automations) checkParams(wallet, automation, params);
  const { em } = context;
  const attached = await em.find(AttachmentEntity, { walletId: wallet.id, destinationWalletId: null });
  const byAutomation = new Map(attached.map((each) => [each.automationId, each]));
  for (const { id: automationId } of automations) {
    if (byAutomation.has(automationId)) continue;
    const attachment = em.create(AttachmentEntity, {
      id: context.ids.cuid2(),
      walletId: wallet.id,
      automationId,
      params: params ?? null,
      agreedById: wallet.owner_id,
      ...{ destinationWalletId: null, routeKey: null, route: null },
      createdAtMs: context.nowMs,
      updatedAtMs: context.nowMs,
    });
    byAutomation.set(automationId, attachment);
  }
  if (byAutomation.size > MAX_ATTACHED) {
    throw new ApiError(
      'invalid_request',
      `expected at most ${MAX_ATTACHED} attached automations of a wallet`,
    );
  }
  await em.flush();
  await changeAuthority(context, { before: wallet, after: wallet, authorization });
  return automations.map((automation) => attachmentView(byAutomation.get(automation.id)!, automation));
}

/**
 * Detaches automations from a wallet. If the wallet has an owner, the owner must sign. Executions of earlier deposits
 * finish.
 *
 * @throws ApiError not_found; what `requireAuthorization` throws.
 */
export async function detachAutomations(
  context: OperationContext,
  walletId: string,
  { automation_ids: ids }: DetachWalletAutomationsRequest,
): Promise<void> {
  const wallet = await findWallet(context, walletId);
  await requireAuthorization(context, { ownerId: wallet.owner_id });
  await lockWallet(context, wallet);
  await context.em.nativeDelete(AttachmentEntity, {
    ...{ walletId: wallet.id, automationId: { $in: ids }, destinationWalletId: null },
  });
}

/**
 * Lists the automations attached to a wallet, in the form in which the wallet's response shows them. The automations of
 * deposit addresses (`isManaged`) are left out.
 */
export async function attachedAutomations(
  { em }: Pick<OperationContext, 'em'>,
  wallet: FoundWallet,
): Promise<AttachedWalletAutomation[]> {
  if (!wallet.has_automations) return [];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallet_automation_attachments as attachments')
    .innerJoin('wallet_automations as automations', 'automations.id', 'attachments.automation_id')
    .select(['automations.id', 'automations.is_enabled as isEnabled'])
    .where('attachments.wallet_id', '=', wallet.id)
    .where('automations.is_managed', '=', 0)
    .orderBy('attachments.created_at_ms')
    .orderBy('attachments.id')
    .limit(MAX_ATTACHED)
    .execute();
  return rows.map(({ id, isEnabled }) => ({ id, enabled: isEnabled === 1 }));
}

/**
 * Locks a wallet until the transaction ends, in the state that the request has verified.
 *
 * INVARIANT: the owner whose signatures were verified is still the owner, and no concurrent transaction exports the
 * wallet, archives it or changes its owner.
 *
 * @throws StaleReadError if the wallet has changed since it was read.
 */
export async function lockWallet({ em }: OperationContext, wallet: WalletRow): Promise<void> {
  const { id, owner_id: ownerId, exported_at_ms: exportedAtMs } = wallet;
  const row = await em.findOne(
    WalletEntity,
    { id, ownerId, exportedAtMs, archivedAtMs: null },
    { fields: ['id'], disableIdentityMap: true, ...lockForUpdate },
  );
  // The request runs again and sees the change.
  if (row === null) throw new StaleReadError(`wallet ${wallet.id} changed after it was read`);
}

/**
 * Finds the automations with these ids, each once, in the order of the ids. Locks them, so that none is deleted before
 * it is attached. The id of an automation that belongs to a deposit address (`isManaged`) is refused as unknown.
 *
 * @throws ApiError invalid_data
 */
async function automationsOf(
  { app, em }: OperationContext,
  ids: readonly string[],
): Promise<StoredAutomation[]> {
  const found = await em.find(
    AutomationEntity,
    { id: { $in: [...new Set(ids)] }, appId: app.id, isManaged: 0 },
    { ...lockForUpdate, orderBy: { id: 'asc' } },
  );
  const byId = new Map(found.map((automation) => [automation.id, automation]));
  return [...new Set(ids)].map((id) => {
    const automation = byId.get(id);
    if (automation !== undefined) return automation;
    throw invalidField(
      `/automation_ids/${ids.indexOf(id)}`,
      `expected the id of an automation, got \`${id}\``,
    );
  });
}

function checkParams(
  wallet: WalletRow,
  { id, config: { action } }: StoredAutomation,
  params: SwapAttachmentParams | undefined,
): void {
  if (action.type !== 'swap') {
    if (params !== undefined) throw invalidField('/params', `expected none: \`${id}\` does not swap`);
    return;
  }
  const chain = chainOfCaip2(action.destination_chain_asset.caip2);
  if (params === undefined) {
    if (chain?.chainType === wallet.chain_type) return;
    throw invalidField(
      '/params',
      `expected a \`destination_address\`: \`${id}\` swaps to a chain that this wallet is not on`,
    );
  }
  const { destination_address: address } = params;
  if (chain === undefined || readChainAddress(chain.chainType, address) === undefined) {
    throw invalidField(
      '/params/destination_address',
      `expected an address on \`${chain?.name ?? action.destination_chain_asset.caip2}\`, got \`${address}\``,
    );
  }
}

function attachmentView(
  attachment: StoredAttachment,
  automation: StoredAutomation,
): WalletAutomationAttachmentResponse {
  return {
    id: attachment.id,
    automation_id: attachment.automationId,
    wallet_id: attachment.walletId,
    status: automation.isEnabled === 1 ? 'enabled' : 'disabled',
    params: attachment.params,
    created_at: new Date(attachment.createdAtMs).toISOString(),
    updated_at: new Date(attachment.updatedAtMs).toISOString(),
  };
}

const MAX_PAGE = 100;

/**
 * Lists one page of the app's executions, newest first.
 *
 * @throws ApiError invalid_data for a cursor that is not an execution of the app.
 */
export async function listExecutions(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  options: { cursor?: string | undefined; limit?: number | undefined; walletId?: string | undefined },
): Promise<{ executions: WalletAutomationExecutionResponse[]; nextCursor: string | null }> {
  const { cursor, walletId, limit = MAX_PAGE } = options;
  const after =
    cursor === undefined ? undefined : await em.findOne(ExecutionEntity, { id: cursor, appId: app.id });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const where = { appId: app.id, ...(walletId === undefined ? {} : { walletId }) };
  const { page, nextCursor } = await findPage(em, ExecutionEntity, where, { after, limit });
  const attachments = await em.find(AttachmentEntity, { id: { $in: page.map((each) => each.attachmentId) } });
  const present = new Set(attachments.map(({ id }) => id));
  return { executions: page.map((each) => executionView(each, present)), nextCursor };
}

function executionView(
  execution: StoredExecution,
  present: ReadonlySet<string>,
): WalletAutomationExecutionResponse {
  return {
    id: execution.id,
    automation_attachment_id: present.has(execution.attachmentId) ? execution.attachmentId : null,
    wallet_id: execution.walletId,
    wallet_action_id: execution.actionId,
    status: execution.status as WalletAutomationExecutionStatus,
    trigger_asset_address: execution.assetAddress,
    trigger_block_number: execution.blockNumber,
    trigger_caip2: execution.caip2,
    trigger_tx_hash: execution.transactionHash,
    created_at: timeText(execution.createdAtMs),
    submitted_at: optionalTime(execution.submittedAtMs),
    completed_at: optionalTime(execution.completedAtMs),
    failed_at: optionalTime(execution.failedAtMs),
    failure_reason: execution.failureReason,
    updated_at: timeText(execution.updatedAtMs),
  };
}

function timeText(atMs: number): string {
  return new Date(atMs).toISOString();
}

function optionalTime(atMs: number | null): string | null {
  return atMs === null ? null : timeText(atMs);
}
