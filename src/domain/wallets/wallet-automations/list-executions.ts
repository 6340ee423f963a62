import { invalidQuery } from '../../../errors.ts';
import type {
  WalletAutomationExecutionResponse,
  WalletAutomationExecutionStatus,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { AttachmentEntity } from '../../access/automations/attachment.entity.ts';
import { ExecutionEntity, type StoredExecution } from '../../access/automations/execution.entity.ts';

const MAX_PAGE = 100;

/**
 * One page of the app's executions, newest first.
 *
 * @throws ApiError invalid_data for a cursor of no execution.
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
