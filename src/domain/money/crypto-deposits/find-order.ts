import { notFound } from '../../../errors.ts';
import type { GetCryptoDepositAccountOrderResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { ExecutionEntity, type StoredExecution } from '../../access/automations/execution.entity.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { findWalletAction } from '../wallet-actions/find-wallet-action.ts';

type FindContext = Pick<OperationContext, 'app' | 'em'>;
type Order = GetCryptoDepositAccountOrderResponse;

/**
 * An order: the execution that a deposit at a deposit address has started.
 *
 * CHOICE: of the wallet that the deposit is for, and of the wallet at the address, because routes name the latter.
 *
 * @throws ApiError not_found
 */
export async function findOrder(context: FindContext, walletId: string, orderId: string): Promise<Order> {
  const wallet = await findWallet(context, walletId);
  const execution = await context.em.findOne(ExecutionEntity, { id: orderId, ...ordersOf(wallet.id) });
  if (execution === null) throw notFound('Order');
  return orderView(context, execution);
}

/**
 * The first order of a wallet that started after a time.
 *
 * @param after RFC 3339.
 * @throws ApiError not_found
 */
export async function findNextOrder(
  context: FindContext,
  walletId: string,
  after: string,
): Promise<Order | null> {
  const wallet = await findWallet(context, walletId);
  const [execution] = await context.em.find(
    ExecutionEntity,
    { ...ordersOf(wallet.id), createdAtMs: { $gt: Date.parse(after) } },
    { orderBy: { createdAtMs: 'asc', id: 'asc' }, limit: 1 },
  );
  return execution === undefined ? null : orderView(context, execution);
}

function ordersOf(walletId: string) {
  return {
    destinationWalletId: { $ne: null },
    $or: [{ destinationWalletId: walletId }, { walletId }],
  };
}

async function orderView(context: FindContext, execution: StoredExecution): Promise<Order> {
  return { id: execution.id, status: await statusOf(context, execution) };
}

async function statusOf(
  context: FindContext,
  { status, walletId, actionId, sweptById }: StoredExecution,
): Promise<Order['status']> {
  if (status === 'completed') return 'succeeded';
  if (status === 'pending' || status === 'submitted') return 'pending';
  if (status === 'skipped') {
    const sweep = sweptById === null ? null : await context.em.findOne(ExecutionEntity, { id: sweptById });
    // Without a sweep the owner has spent the deposit before it was converted.
    return sweep === null ? 'rejected' : statusOf(context, sweep);
  }
  // Nothing went on chain without an action.
  if (actionId === null) return 'rejected';
  return (await findWalletAction(context, walletId, actionId)).status;
}
