import { getFiatDeposit, getVirtualAccount } from '../../domain/money/fiat-deposits/find-fiat-deposit.ts';
import { invalidField, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'receiveFiatDeposit'> = async ({ body }, { fiat, read, runDueJobs }) => {
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
