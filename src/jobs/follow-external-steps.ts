import {
  advanceExternalStep,
  claimDueExternalSteps,
  type DueExternalStep,
  type ExternalProgress,
  externalSteps,
  type StepSystem,
  systemOfStep,
} from '../domain/money/wallet-actions/due-steps.ts';
import type { ExternalKind } from '../domain/money/wallet-actions/wallet-action-steps.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;

/**
 * Creates the job that follows the steps that other systems perform, from the deposit until they have paid out or
 * refunded. The systems are polled between transactions, independently of one another.
 */
export function followExternalSteps({ services, inUnit }: JobContext): Job {
  const { clock, log } = services;
  const report = outagesIn(log, 'external steps could not be followed; they are tried again');
  const pollers = externalSteps(services);
  const kinds = Object.keys(pollers) as ExternalKind[];

  const ask = async (due: DueExternalStep): Promise<ExternalProgress> => {
    try {
      return (await pollers[due.kind]?.(due)) ?? { kind: 'waiting' };
    } catch (err) {
      report(due.kind, err);
      return { kind: 'waiting' };
    }
  };

  return jobApart({
    name: 'follow-external-steps',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    batch: BATCH,
    subjectOf: (due: DueExternalStep) => JSON.stringify(systemOfStep(due)),
    claim(busySubjects, limit) {
      const claimant = { owner: services.processId, nowMs: clock.now() };
      const busy = busySubjects.map((subject) => JSON.parse(subject) as StepSystem);
      return inUnit((em) => claimDueExternalSteps(em, claimant, { kinds, busy, limit }));
    },
    async work(due) {
      const nowMs = clock.now();
      const ended = await Promise.all(
        due.map(async (each) => {
          const progress = await ask(each);
          return inUnit((em, notes) => advanceExternalStep({ em, notes }, each, { progress, nowMs }));
        }),
      );
      return ended.includes(true);
    },
  });
}
