import { endExecutionOfAction } from '../domain/money/automation-runs/executions.ts';
import { finishWalletActions } from '../domain/money/wallet-actions/finish-wallet-actions.ts';
import { settleIntentOfAction } from '../domain/requests/intents/execute-intent.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;

/**
 * Creates the job that settles wallet actions whose transactions have ended, and the intents and executions that
 * started them.
 */
export function runWalletActions({ services, inUnit }: JobContext): Job {
  return {
    name: 'run-wallet-actions',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    run: () =>
      inUnit(async (em, notes) => {
        const nowMs = services.clock.now();
        const ended = await finishWalletActions(services, { em, notes }, nowMs);
        for (const action of ended) {
          await settleIntentOfAction({ ids: services.ids, em, notes, nowMs }, action);
          await endExecutionOfAction(em, action, nowMs);
        }
        return ended.length > 0;
      }),
  };
}
