import { EXPIRED_AT_ONCE, expireIntents as expire } from '../domain/intents/expire-intents.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 10_000;

/** Writes down which intents have expired. */
export function expireIntents({ services, inUnit }: JobContext): Job {
  return {
    name: 'expire-intents',
    everyMs: EVERY_MS,
    run: async () => (await inUnit((em) => expire(em, services.clock.now()))) === EXPIRED_AT_ONCE,
  };
}
