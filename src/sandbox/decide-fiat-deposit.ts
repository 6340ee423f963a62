import { getFiatDeposit } from '../domain/money/fiat-deposits/record-fiat-deposits.ts';
import { ApiError, notFound } from '../errors.ts';
import type { ControlContext } from './control-plane.ts';

/**
 * Releases or refunds a deposit that the simulated bank holds. Throws ApiError not_found, and invalid_state when it has
 * sent or refunded the deposit.
 */
export async function decideFiatDeposit(
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
