import { inUnitOf, unitsOf } from '../../../src/http/unit-of-work.ts';
import { followExchanges } from '../../../src/jobs/follow-exchanges.ts';
import { followTransactions } from '../../../src/jobs/follow-transactions.ts';
import { runWalletActions } from '../../../src/jobs/run-wallet-actions.ts';
import type { TestOperations } from '../../support/run-operations.ts';

const contextOf = ({ services, database }: TestOperations) => ({
  services,
  inUnit: inUnitOf(unitsOf(database)),
});

/** Looks after what was sent until there is nothing to do. */
export async function follow(operations: TestOperations): Promise<void> {
  while (await followTransactions(contextOf(operations)).run(() => undefined));
}

/** Asks the exchange what became of deposits until there is nothing to ask. */
export async function askExchange(operations: TestOperations): Promise<void> {
  while (await followExchanges(contextOf(operations)).run(() => undefined));
}

/** Takes the next steps of wallet actions until there is none. */
export async function finish(operations: TestOperations): Promise<void> {
  while (await runWalletActions(contextOf(operations)).run(() => undefined));
}

/** All that moves transfers along, exchanges included. */
export async function runJobs(operations: TestOperations): Promise<void> {
  await follow(operations);
  await askExchange(operations);
  await finish(operations);
}
