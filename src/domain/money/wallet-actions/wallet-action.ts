import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { WalletActionResponse, WalletActionType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { olderThan, pageOf } from '../../../storage/find-page.ts';
import type { Authorization } from '../../access/owners/require-authorization.ts';
import { recordEvent } from '../../base/events/events.ts';
import type { Tables } from '../../tables.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { type BuildTransaction, type BuiltTransaction, sendInOrder } from '../sending/broadcast.ts';
import { actionTypeOf } from './action-types.ts';
import { WalletActionEntity, type WalletActionRow, walletActionColumns } from './wallet-action.entity.ts';
import { type ExternalKind, type StoredStep, stepView } from './wallet-action-steps.ts';

/** Converts an action to wire form. The result contains the steps if they are given. */
export function walletActionView(row: WalletActionRow, steps?: readonly StoredStep[]): WalletActionResponse {
  const fields = fieldsOf(row, steps);
  for (const field of actionTypeOf(row.type).onlyInEvents ?? []) delete fields[field];
  return fields as WalletActionResponse;
}

function fieldsOf(row: WalletActionRow, steps?: readonly StoredStep[]): Record<string, unknown> {
  return {
    id: row.id,
    type: row.type,
    wallet_id: row.wallet_id,
    status: row.status,
    created_at: new Date(row.created_at_ms).toISOString(),
    reference_id: row.reference_id,
    ...actionTypeOf(row.type).ifNotStored,
    ...JSON.parse(row.details),
    ...(row.outcome === null ? actionTypeOf(row.type).pending : JSON.parse(row.outcome)),
    ...(steps === undefined ? {} : { steps: steps.map(stepView) }),
  };
}

const endFields = { succeeded: 'completed_at', rejected: 'rejected_at', failed: 'failed_at' } as const;

/** Returns the type of the event for an action's current status. */
export function actionEventType({ type, status }: WalletActionRow): string {
  return actionTypeOf(type).events[status];
}

export function actionEvent(row: WalletActionRow, steps?: readonly StoredStep[]): object {
  const { id, type, ...shown } = fieldsOf(row, steps);
  const { notInEvents, onlyInSuccess = [] } = actionTypeOf(row.type);
  for (const field of notInEvents) delete shown[field];
  if (row.status !== 'succeeded') for (const field of onlyInSuccess) delete shown[field];
  const { status, ended_at_ms: endedAtMs } = row;
  return {
    ...shown,
    wallet_action_id: id,
    action_type: type,
    ...(status === 'pending' || endedAtMs === null
      ? {}
      : { [endFields[status]]: new Date(endedAtMs).toISOString() }),
  };
}

// KYSELY: the insertion reports whether the nonce was used before. Actions are read with the columns that claims read.

interface NewWalletAction {
  readonly type: WalletActionType;
  readonly nonce: string | undefined;
  readonly referenceId: string | undefined;
  /** The wire fields that are specific to the type. */
  readonly details: object;
  /** Values that are needed to compute the outcome and that no response shows. Integers are decimal strings. */
  readonly terms?: object | undefined;
  readonly steps: readonly (NewTransactionStep | NewExternalStep)[];
}

/** A step whose transaction is signed and stored. */
interface NewTransactionStep {
  /** The step type of the API. */
  readonly type: string;
  readonly transactionId: string;
  /** Whether the outcome depends on what the transaction moves. If so, its effects are read before the action ends. */
  readonly readsEffects?: boolean | undefined;
}

/** A step that another system carries out. The previous step pays its deposit. */
export interface NewExternalStep {
  readonly type: 'external_transaction';
  readonly kind: ExternalKind;
  /** The id in the other system, which `follow-external-steps` uses to poll it. */
  readonly externalId: string;
  /** The chain of the payment; null for a bank payment. */
  readonly caip2: string | null;
  /** The wire fields of the action that change when the step is done. */
  readonly delivery: object;
}

/**
 * Stores a new action with its steps and records its event.
 *
 * @throws ApiError resource_conflict when another request has used this nonce.
 */
export async function beginWalletAction(
  context: OperationContext,
  walletId: string,
  action: NewWalletAction,
): Promise<WalletActionRow> {
  const row: WalletActionRow = {
    id: context.ids.uuid(),
    app_id: context.app.id,
    wallet_id: walletId,
    type: action.type,
    status: 'pending',
    nonce: action.nonce ?? null,
    reference_id: action.referenceId ?? null,
    details: JSON.stringify(action.details),
    terms: action.terms === undefined ? null : JSON.stringify(action.terms),
    outcome: null,
    created_at_ms: context.nowMs,
    ended_at_ms: null,
  };
  const database = context.em.getKysely<Tables>();
  // INVARIANT: a unique index on wallet and nonce admits only one of several concurrent requests.
  const { numInsertedOrUpdatedRows } = await database
    .insertInto('wallet_actions')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows !== 1n) throw nonceSeen();
  await database
    .insertInto('wallet_action_steps')
    .values(
      action.steps.map((step, position) => ({
        ...{ action_id: row.id, position, type: step.type },
        ...('externalId' in step
          ? externalColumns(step, context.nowMs)
          : transactionColumns(step, context.nowMs)),
      })),
    )
    .execute();
  await recordEvent(context, {
    appId: context.app.id,
    type: actionEventType(row),
    payload: actionEvent(row),
  });
  return row;
}

const transactionColumns = ({ transactionId, readsEffects }: NewTransactionStep, nowMs: number) => ({
  transaction_id: transactionId,
  ...{ external_kind: null, external_id: null, external_status: null, caip2: null, delivery: null },
  next_check_at_ms: readsEffects === true ? nowMs : null,
});

const externalColumns = ({ kind, externalId, caip2, delivery }: NewExternalStep, nowMs: number) => ({
  transaction_id: null,
  ...{ external_kind: kind, external_id: externalId, external_status: 'waiting' },
  ...{ caip2, delivery: JSON.stringify(delivery) },
  next_check_at_ms: nowMs,
});

/**
 * Refuses a nonce that the wallet has already used. Call it before any chain call or signature.
 *
 * @throws ApiError resource_conflict
 */
export async function requireFreshNonce(
  { em }: Pick<OperationContext, 'em'>,
  walletId: string,
  nonce: string | undefined,
): Promise<void> {
  if (nonce === undefined) return;
  const seen = await em.count(WalletActionEntity, { walletId, nonce });
  if (seen > 0) throw nonceSeen();
}

function nonceSeen(): ApiError {
  return new ApiError('resource_conflict', '/nonce: the wallet has seen this nonce', {
    headers: { 'x-should-retry': 'false' },
  });
}

type FindContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * Finds an action of a wallet.
 *
 * CHOICE: archived wallets count too, because their pending transactions still complete.
 *
 * @throws ApiError not_found, also for an action of another wallet.
 */
export async function findWalletAction(
  context: FindContext,
  walletId: string,
  actionId: string,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId, { includeArchived: true });
  const row = await selectAction(context, wallet.id, actionId);
  if (row === undefined) throw notFound('Wallet action');
  return row;
}

/**
 * Lists one page of a wallet's actions, newest first.
 *
 * @param options `cursor` is the `nextCursor` of the previous page; `limit` is 1 to 100, by default 100.
 * @throws ApiError not_found; invalid_data for a cursor that is not an action of the wallet.
 */
export async function listWalletActions(
  context: FindContext,
  walletId: string,
  options: {
    cursor?: string | undefined;
    limit?: number | undefined;
    type?: WalletActionType | undefined;
  },
): Promise<{ actions: WalletActionRow[]; nextCursor: string | null }> {
  const { cursor, type, limit = MAX_PAGE } = options;
  const wallet = await findWallet(context, walletId, { includeArchived: true });
  let query = context.em
    .getKysely<Tables>()
    .selectFrom('wallet_actions')
    .select(walletActionColumns)
    .where('wallet_id', '=', wallet.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1);
  if (type !== undefined) query = query.where('type', '=', type);
  if (cursor !== undefined) {
    const last = await selectAction(context, wallet.id, cursor);
    if (last === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
    query = query.where(olderThan(last.created_at_ms, last.id));
  }
  const { page, nextCursor } = pageOf((await query.execute()) as WalletActionRow[], limit);
  return { actions: page, nextCursor };
}

async function selectAction(
  { em }: FindContext,
  walletId: string,
  id: string,
): Promise<WalletActionRow | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('wallet_actions')
    .select(walletActionColumns)
    .where('id', '=', id)
    .where('wallet_id', '=', walletId)
    .executeTakeFirst();
  return row as WalletActionRow | undefined;
}

interface StepsToSend {
  readonly type: WalletActionType;
  readonly referenceId?: string | undefined;
  /** The functions that build one transaction each. Their order is the order in which the transactions take effect. */
  readonly builds: readonly BuildTransaction[];
  readonly readsEffects?: boolean | undefined;
  readonly authorization: Authorization;
}

/**
 * Signs and stores all transactions of an action in the transaction of the request, and schedules their broadcast, in
 * order, for after the commit. The caller passes the result to `beginWalletAction` in the same transaction. Nothing is
 * signed after the request.
 */
export async function sendSteps(
  context: OperationContext,
  wallet: WalletRow,
  { type, referenceId, builds, readsEffects, authorization }: StepsToSend,
): Promise<NewTransactionStep[]> {
  const options = { method: type, referenceId, authorization };
  const sent = await sendInOrder(afterCommitContext(context), wallet, builds, options);
  return sent.map(({ built, transactionId }) => ({
    type: stepType(wallet, built),
    transactionId,
    readsEffects,
  }));
}

/**
 * Returns the context for work after the commit. The action exists by then, so a refusal by the chain ends the action
 * as `rejected` and does not become an error response.
 */
function afterCommitContext(context: OperationContext): OperationContext {
  return {
    ...context,
    afterCommit: (work) =>
      context.afterCommit(async () => {
        try {
          await work();
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
        }
      }),
  };
}

const stepTypes: Readonly<Record<string, string>> = {
  ethereum: 'evm_transaction',
  solana: 'svm_transaction',
  tron: 'tvm_transaction',
};
function stepType(wallet: WalletRow, { sponsorship }: BuiltTransaction): string {
  if (sponsorship === 'operation') return 'evm_user_operation';
  return stepTypes[wallet.chain_type] ?? 'external_transaction';
}
