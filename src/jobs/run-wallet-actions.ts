import { finishWalletActions } from '../domain/wallet-actions/finish-wallet-actions.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;

/** Ends wallet actions once the transactions that they are made of have ended. */
export function runWalletActions({ services, inUnit }: JobContext): Job {
  return {
    name: 'run-wallet-actions',
    everyMs: EVERY_MS,
    run: async () => (await inUnit((em) => finishWalletActions(services, em, services.clock.now()))) > 0,
  };
}
