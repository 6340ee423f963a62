import { releaseEndpointsOf } from '../domain/access/webhooks/fan-out-events.ts';
import type { Claimant } from '../domain/base/processes/server-processes.ts';
import { releaseExecutionsOf } from '../domain/money/automation-runs/executions.ts';
import { releaseCustomersOf } from '../domain/money/fiat-customers/customer-snapshot.ts';
import { releaseTransactionsOf } from '../domain/money/transactions/claim-transactions.ts';
import { releaseChainsOf } from '../domain/money/transactions/record-funds.ts';
import { releaseStepsOf } from '../domain/money/wallet-actions/due-steps.ts';
import { settleInterruptedIntents } from '../domain/requests/intents/execute-intent.ts';
import type { Services, UnitContext } from '../ports/operation-context.ts';

const releases = [
  releaseEndpointsOf,
  releaseTransactionsOf,
  releaseChainsOf,
  releaseStepsOf,
  releaseExecutionsOf,
  releaseCustomersOf,
];

/** Makes everything due that a process has claimed and will not finish. */
export async function releaseClaims(
  { ids }: Pick<Services, 'ids'>,
  { em, notes }: UnitContext,
  dead: Claimant,
): Promise<void> {
  for (const release of releases) await release(em, dead);
  await settleInterruptedIntents({ ids, em, notes, nowMs: dead.nowMs }, dead.owner);
}
