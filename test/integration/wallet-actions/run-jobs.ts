import { followExternalSteps } from '../../../src/jobs/follow-external-steps.ts';
import { followTransactions } from '../../../src/jobs/follow-transactions.ts';
import { readEffects } from '../../../src/jobs/read-effects.ts';
import { runWalletActions } from '../../../src/jobs/run-wallet-actions.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { runToEnd, type TestOperations } from '../../support/run-operations.ts';

const contextOf = ({ services, database }: TestOperations) => ({
  services,
  inUnit: inUnitOf(unitsOf(database)),
});

/** Follows transactions until nothing is due. */
export async function follow(operations: TestOperations): Promise<void> {
  await runToEnd(followTransactions(contextOf(operations)));
}

/** Follows exchanges until nothing is due. */
export async function askExchange(operations: TestOperations): Promise<void> {
  await runToEnd(followExternalSteps(contextOf(operations)));
}

/** Reads what transactions moved until nothing is due. */
export async function readMoved(operations: TestOperations): Promise<void> {
  await runToEnd(readEffects(contextOf(operations)));
}

/** Settles wallet actions until nothing is due. */
export async function finish(operations: TestOperations): Promise<void> {
  await runToEnd(runWalletActions(contextOf(operations)));
}

/** Runs all jobs of wallet actions. */
export async function runJobs(operations: TestOperations): Promise<void> {
  await follow(operations);
  await readMoved(operations);
  await askExchange(operations);
  await finish(operations);
}
