import type { AutomationConfig, SwapAttachmentParams } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { isSameAsset, matchesFilter } from '../../access/automations/automation.ts';
import type { Tables } from '../../tables.ts';

// KYSELY: joins tables of higher layers, whose entities cannot be imported here.

/** A deposit to a wallet that is being recorded. */
export interface TriggerDeposit {
  readonly appId: string;
  readonly walletId: string;
  readonly caip2: string;
  /** The token's address, with EVM addresses in checksum case, or `native`. */
  readonly assetAddress: string;
  readonly rawAmount: bigint;
  /** Identifies the deposit on its chain (`ChainTransfer.key`). */
  readonly transferKey: string;
  readonly transactionHash: string;
  readonly blockNumber: string;
}

interface Attached {
  readonly id: string;
  readonly walletId: string;
  readonly automationId: string;
  readonly agreedById: string | null;
  readonly config: AutomationConfig;
  readonly params: SwapAttachmentParams | null;
  readonly destinationWalletId: string | null;
}

type TriggerContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs'>;

/**
 * Stores an execution for each deposit that an attached automation matches, in the transaction that records the
 * deposit. Only the oldest matching attachment acts.
 *
 * Proceeds of a wallet's own actions trigger nothing, because two automations that swap in opposite directions would
 * trigger each other forever. If the origin of a deposit is not known yet, `originOf` determines it before the
 * execution runs.
 */
export async function triggerAutomations(
  context: TriggerContext,
  deposits: readonly TriggerDeposit[],
): Promise<void> {
  const attached = await attachmentsOf(context, [...new Set(deposits.map(({ walletId }) => walletId))]);
  if (attached.size === 0) return;
  for (const deposit of deposits) {
    const match = (attached.get(deposit.walletId) ?? []).find((each) => matches(each, deposit));
    if (match === undefined || deposit.rawAmount === 0n || (await isOwn(context, deposit))) continue;
    await startExecution(context, match, deposit);
  }
}

/** Finds the attachment that acts on an asset of a wallet; undefined if none does. */
export async function matchingAttachment(
  context: Pick<OperationContext, 'em'>,
  asset: Pick<TriggerDeposit, 'walletId' | 'caip2' | 'assetAddress'>,
): Promise<Attached | undefined> {
  const attached = await attachmentsOf(context, [asset.walletId]);
  return attached.get(asset.walletId)?.find((each) => matches(each, asset));
}

/** Stores a pending execution and returns its id; undefined if the deposit already has one. */
export async function startExecution(
  { em, ids, nowMs }: TriggerContext,
  { id, automationId, agreedById, config, params, destinationWalletId }: Attached,
  { appId, walletId, caip2, assetAddress, transferKey, transactionHash, blockNumber }: TriggerDeposit,
): Promise<string | undefined> {
  const inserted = await em
    .getKysely<Tables>()
    .insertInto('wallet_automation_executions')
    .values({
      id: ids.cuid2(),
      app_id: appId,
      wallet_id: walletId,
      attachment_id: id,
      automation_id: automationId,
      action: JSON.stringify({ ...config.action, ...params }),
      agreed_by_id: agreedById,
      destination_wallet_id: destinationWalletId,
      caip2,
      asset_address: assetAddress,
      transfer_key: transferKey,
      transaction_hash: transactionHash,
      block_number: blockNumber,
      status: 'pending',
      created_at_ms: nowMs,
      updated_at_ms: nowMs,
      next_run_at_ms: nowMs,
      ...{ action_id: null, failure_reason: null, retry_until_ms: null, swept_by_id: null },
      ...{ submitted_at_ms: null, completed_at_ms: null, failed_at_ms: null },
    })
    .onConflict((conflict) => conflict.columns(['wallet_id', 'caip2', 'transfer_key']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted?.id;
}

/** Reads the attachments of enabled automations, by wallet, oldest first. */
async function attachmentsOf(
  { em }: Pick<OperationContext, 'em'>,
  walletIds: readonly string[],
): Promise<ReadonlyMap<string, readonly Attached[]>> {
  if (walletIds.length === 0) return new Map();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallet_automation_attachments as attachments')
    .innerJoin('wallet_automations as automations', 'automations.id', 'attachments.automation_id')
    .select([
      'attachments.id',
      'attachments.wallet_id as walletId',
      'attachments.automation_id as automationId',
      'attachments.agreed_by_id as agreedById',
      'attachments.params',
      'attachments.destination_wallet_id as destinationWalletId',
      'automations.config',
    ])
    .where('attachments.wallet_id', 'in', walletIds)
    .where('automations.is_enabled', '=', 1)
    .orderBy('attachments.created_at_ms')
    .orderBy('attachments.id')
    .execute();
  const attached = rows.map(({ config, params, ...row }) => ({
    ...row,
    config: JSON.parse(config) as AutomationConfig,
    params: params === null ? null : (JSON.parse(params) as SwapAttachmentParams),
  }));
  return Map.groupBy(attached, ({ walletId }) => walletId);
}

function matches(
  { config: { trigger, action }, params }: Attached,
  { caip2, assetAddress }: Pick<TriggerDeposit, 'caip2' | 'assetAddress'>,
): boolean {
  const asset = { caip2, asset_address: assetAddress };
  if (!matchesFilter(trigger.assets, asset)) return false;
  const isProceeds =
    action.type === 'swap' && params === null && isSameAsset(action.destination_chain_asset, asset);
  return !isProceeds;
}

/** Returns whether the deposit came from the wallet's own transaction, or from an exchange that the wallet has paid. */
async function isOwn(
  { em }: Pick<OperationContext, 'em'>,
  { walletId, caip2, transactionHash, rawAmount }: TriggerDeposit,
): Promise<boolean> {
  if (await isOwnTransaction({ em }, { walletId, caip2, transactionHash })) return true;
  const database = em.getKysely<Tables>();
  const payments = await database
    .selectFrom('wallet_action_steps as steps')
    .innerJoin('wallet_actions as actions', 'actions.id', 'steps.action_id')
    .select(['steps.hash', 'steps.delivery'])
    .where('actions.wallet_id', '=', walletId)
    .where('steps.caip2', '=', caip2)
    .where('steps.external_kind', '=', 'exchange')
    .where((where) =>
      where.or([where('steps.hash', '=', transactionHash), where('steps.external_status', '=', 'waiting')]),
    )
    .execute();
  // The payment can be seen on the chain before the exchange reports its hash.
  return payments.some(
    ({ hash, delivery }) =>
      hash === transactionHash || (hash === null && delivery !== null && delivers(delivery, rawAmount)),
  );
}

function delivers(delivery: string, rawAmount: bigint): boolean {
  const { output_amount: amount } = JSON.parse(delivery) as { readonly output_amount?: unknown };
  return amount === String(rawAmount);
}

/** Returns whether the transaction was sent by the wallet itself, or by an exchange that the wallet has paid. */
export async function isOwnTransaction(
  { em }: Pick<OperationContext, 'em'>,
  { walletId, caip2, transactionHash }: Pick<TriggerDeposit, 'walletId' | 'caip2' | 'transactionHash'>,
): Promise<boolean> {
  const sent = await em
    .getKysely<Tables>()
    .selectFrom('transactions')
    .select('id')
    .where('caip2', '=', caip2)
    .where('transaction_hash', '=', transactionHash)
    .where('wallet_id', '=', walletId)
    .executeTakeFirst();
  if (sent !== undefined) return true;
  // The transaction may be a refund on the chain of the deposit, so the chain of the step is not compared.
  const paid = await em
    .getKysely<Tables>()
    .selectFrom('wallet_action_steps as steps')
    .innerJoin('wallet_actions as actions', 'actions.id', 'steps.action_id')
    .select('steps.action_id')
    .where('actions.wallet_id', '=', walletId)
    .where('steps.hash', '=', transactionHash)
    .executeTakeFirst();
  return paid !== undefined;
}

/**
 * Returns the origin of an execution's deposit, as far as it is known now. `unknown` means that an open user operation
 * of the wallet may have caused it: its transaction is known only after the operation has been followed.
 */
export async function originOf(
  context: Pick<OperationContext, 'em'>,
  execution: Pick<TriggerDeposit, 'walletId' | 'caip2' | 'transactionHash'> & {
    readonly createdAtMs: number;
  },
): Promise<'own' | 'unknown' | 'other'> {
  if (await isOwnTransaction(context, execution)) return 'own';
  const open = await context.em
    .getKysely<Tables>()
    .selectFrom('transactions')
    .select('id')
    .where('wallet_id', '=', execution.walletId)
    .where('caip2', '=', execution.caip2)
    .where('user_operation_hash', 'is not', null)
    .where('transaction_hash', 'is', null)
    .where('next_check_at_ms', 'is not', null)
    // A later operation cannot have caused the deposit.
    .where('created_at_ms', '<=', execution.createdAtMs)
    .executeTakeFirst();
  return open === undefined ? 'other' : 'unknown';
}
