import type { Job } from '../../src/jobs/runner.ts';

/** Runs one batch of a job, and what continues after it: on a busy machine a batch does not wait for its work. */
export async function runOnce(job: Job): Promise<void> {
  await job.run(() => undefined);
  await job.stop?.();
}

/** Runs a job until nothing is due. */
export async function runToEnd(job: Job): Promise<void> {
  while (await job.run(() => undefined));
  await job.stop?.();
}
