import { checkStepsNow, getPayoutOfAction } from '../../domain/money/wallet-actions/due-steps.ts';
import { payoutOfStep } from '../../domain/money/wallet-actions/external-steps.ts';
import { ApiError, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'steerFiatPayout'> = async ({ path, body }, context) => {
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
