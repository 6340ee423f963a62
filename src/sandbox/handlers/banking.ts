import { getFiatDeposit, getVirtualAccount } from '../../domain/money/fiat-deposits/record-fiat-deposits.ts';
import {
  checkStepsNow,
  getPayoutOfAction,
  payoutOfStep,
} from '../../domain/money/wallet-actions/due-steps.ts';
import { ApiError, invalidField, notFound } from '../../errors.ts';
import type { ControlContext, Handler } from '../control-plane.ts';

export const receiveFiatDeposit: Handler<'receiveFiatDeposit'> = async (
  { body },
  { fiat, read, runDueJobs },
) => {
  const { deposit_account_id: accountId, amount, reference, outcome = 'completed' } = body;
  const account = await read((em) => getVirtualAccount(em, accountId));
  if (account === undefined) throw notFound('Fiat deposit account');
  const received = await fiat.receive(account.environment, {
    ...{ accountId: account.virtualAccountId, amount, reference, outcome },
    rail: body.payment_rail,
    senderName: body.sender_name,
  });
  if (received === undefined) throw notFound('Fiat deposit account');
  if (received === 'amount') throw invalidField('/amount', 'expected an amount above 0');
  await runDueJobs();
  const deposit = await read((em) => getFiatDeposit(em, received.id));
  return { id: received.id, deposit_account_id: accountId, state: deposit?.state ?? 'received' };
};

export const releaseFiatDeposit: Handler<'releaseFiatDeposit'> = ({ path }, context) =>
  decideFiatDeposit(context, path.deposit_id, 'completed');

export const refundFiatDeposit: Handler<'refundFiatDeposit'> = ({ path }, context) =>
  decideFiatDeposit(context, path.deposit_id, 'refunded');

export const steerFiatPayout: Handler<'steerFiatPayout'> = async ({ path, body }, context) => {
  const { fiat, clock, read, change, runDueJobs } = context;
  await runDueJobs();
  const { action_id: actionId } = path;
  const { outcome } = body;
  const externalId = await read((em) => getPayoutOfAction(em, actionId));
  if (externalId === undefined) throw notFound('Payout');
  const { environment, id } = payoutOfStep(externalId);
  if (!(await fiat.decidePayout(environment, id, outcome))) {
    throw new ApiError('invalid_state', 'the payout has ended');
  }
  const nowMs = clock.now();
  await change((em) => checkStepsNow(em, actionId, nowMs));
  await runDueJobs();
  return { wallet_action_id: actionId, provider_payout_id: id, outcome };
};

/**
 * Releases or refunds a deposit that the simulated bank holds.
 *
 * @throws ApiError not_found; invalid_state if the bank has already released or refunded the deposit.
 */
async function decideFiatDeposit(
  { fiat, read, runDueJobs }: ControlContext,
  id: string,
  outcome: 'completed' | 'refunded',
): Promise<{ id: string; deposit_account_id: string; state: string }> {
  await runDueJobs();
  const held = await read((em) => getFiatDeposit(em, id));
  if (held === undefined) throw notFound('Fiat deposit');
  if (!(await fiat.decideDeposit(held.environment, id, outcome))) {
    throw new ApiError('invalid_state', 'the bank has sent or refunded this deposit');
  }
  await runDueJobs();
  const deposit = await read((em) => getFiatDeposit(em, id));
  return { id, deposit_account_id: held.accountId, state: deposit?.state ?? held.state };
}
