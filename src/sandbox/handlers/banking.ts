import { getFiatDeposit, getVirtualAccount } from '../../domain/money/fiat-deposits/record-fiat-deposits.ts';
import { checkStepsNow, getPayoutOfAction } from '../../domain/money/wallet-actions/due-steps.ts';
import { payoutOfStep } from '../../domain/money/wallet-actions/external-steps.ts';
import { ApiError, invalidField, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { decideFiatDeposit } from '../steering.ts';

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
