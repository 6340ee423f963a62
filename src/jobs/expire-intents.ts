import { SETTLED_AT_ONCE, settleInterruptedIntents } from '../domain/requests/intents/execute-intent.ts';
import { EXPIRED_AT_ONCE, expireIntents as expire } from '../domain/requests/intents/intent.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 10_000;

/** Creates the job that marks expired intents, and settles the intents that a crash left in `processing`. */
export function expireIntents({ services, inUnit }: JobContext): Job {
  return {
    name: 'expire-intents',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    async run() {
      const nowMs = services.clock.now();
      const expired = await inUnit((em, notes) => expire({ em, notes, nowMs }));
      const settled = await inUnit((em, notes) =>
        settleInterruptedIntents({ ids: services.ids, em, notes, nowMs }),
      );
      return expired === EXPIRED_AT_ONCE || settled === SETTLED_AT_ONCE;
    },
  };
}
