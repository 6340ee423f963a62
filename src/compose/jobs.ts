import { expireIntents } from '../jobs/expire-intents.ts';
import type { JobContext } from '../jobs/job-context.ts';
import type { Job } from '../jobs/runner.ts';
import { sweepExpired } from '../jobs/sweep-expired.ts';

/** What the server does beside answering requests, the same in every composition. */
export function makeJobs(context: JobContext): Job[] {
  return [sweepExpired(context), expireIntents(context)];
}
