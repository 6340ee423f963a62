import {
  advanceExternalStep,
  claimDueExternalSteps,
  type DueExternalStep,
  type ExternalProgress,
} from '../domain/money/wallet-actions/due-steps.ts';
import { externalSteps } from '../domain/money/wallet-actions/external-steps.ts';
import type { ExternalKind } from '../domain/money/wallet-actions/wallet-action-steps.ts';
import { type JobContext, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Follows the steps that other systems do, from the deposit until they have paid out or given it back. They are asked
 * between transactions.
 */
export function followExternalSteps({ services, inUnit }: JobContext): Job {
  const { clock, log } = services;
  const report = outagesIn(log, 'external steps could not be followed; they are tried again');
  const askers = externalSteps(services);
  const kinds = Object.keys(askers) as ExternalKind[];

  const ask = async (due: DueExternalStep): Promise<ExternalProgress> => {
    try {
      return (await askers[due.kind]?.(due)) ?? { kind: 'waiting' };
    } catch (err) {
      report(due.kind, err);
      return { kind: 'waiting' };
    }
  };

  return {
    name: 'follow-external-steps',
    everyMs: EVERY_MS,
    async run() {
      const nowMs = clock.now();
      const due = await inUnit((em) =>
        claimDueExternalSteps(em, { owner: services.processId, nowMs }, { kinds, limit: BATCH }),
      );
      const ended = await Promise.all(
        due.map(async (each) => {
          const progress = await ask(each);
          return inUnit((em) => advanceExternalStep(em, each, { progress, nowMs }));
        }),
      );
      return due.length === BATCH || ended.includes(true);
    },
  };
}
