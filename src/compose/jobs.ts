import { DELIVER_EVENTS, deliverEvents } from '../jobs/deliver-events.ts';
import { expireIntents } from '../jobs/expire-intents.ts';
import { FIND_DUE_WORK, findDueWork } from '../jobs/find-due-work.ts';
import { followDeposits } from '../jobs/follow-deposits.ts';
import { followExternalSteps } from '../jobs/follow-external-steps.ts';
import { followFiatCustomers } from '../jobs/follow-fiat-customers.ts';
import { followFiatDeposits } from '../jobs/follow-fiat-deposits.ts';
import { followTransactions } from '../jobs/follow-transactions.ts';
import { type Heartbeat, releaseClaims } from '../jobs/heartbeat.ts';
import type { JobContext } from '../jobs/job-context.ts';
import { keepCards } from '../jobs/keep-cards.ts';
import { KEEP_PARTITIONS, keepPartitions } from '../jobs/keep-partitions.ts';
import { pullBack } from '../jobs/pull-back-checks.ts';
import { readEffects } from '../jobs/read-effects.ts';
import { runAutomations } from '../jobs/run-automations.ts';
import { runWalletActions } from '../jobs/run-wallet-actions.ts';
import { type Job, type JobRunner, type ObserveJob, startJobs } from '../jobs/runner.ts';
import { SEQUENCE_AUDIT, sequenceAudit } from '../jobs/sequence-audit.ts';
import { SWEEP_EXPIRED, sweepExpired } from '../jobs/sweep-expired.ts';
import { type RestoreWatch, WATCH_RESTORES } from '../jobs/watch-restores.ts';
import type { AuditTrail, WriteFreeze } from '../ports/audit.ts';
import type { Services } from '../ports/operation-context.ts';
import type { DelayDelivery } from '../ports/requests.ts';
import type { Log } from '../ports/runtime.ts';
import { recordingChanges } from '../server/audit.ts';
import { createBrand } from '../server/brand.ts';
import { committingUnlessFrozen, inUnitOf, type OpenUnit, watching } from '../server/unit-of-work.ts';

/** The background work that a server does beside its requests. Every composition has it. */
export interface BesideRequests {
  readonly jobs: JobRunner;
  /** Opens units of work. Their commit wakes the delivery of events. */
  readonly openUnit: OpenUnit;
}

interface JobsOptions {
  /**
   * Tells other processes that this process is alive, and takes over the work of dead processes. Undefined if only
   * one process uses the database at a time.
   */
  readonly alive?: Heartbeat | undefined;
  /** Delays deliveries. Without it, nothing is delayed. */
  readonly delay?: DelayDelivery | undefined;
  /** Records the changes that jobs make. Without it, they are not recorded. */
  readonly audit?: AuditTrail | undefined;
  /** Opens the jobs' units of work on separate connections. Without it, jobs share the units of work of requests. */
  readonly jobUnits?: OpenUnit | undefined;
  /** Detects that the database was restored. Undefined where no restore can be detected. */
  readonly restores?: RestoreWatch | undefined;
}

/**
 * Creates the jobs of a server without starting them, except the heartbeat.
 *
 * @param wakeSoon called with the name of a job that has something to do.
 */
export function jobsOf(
  services: Services,
  openUnit: OpenUnit,
  { alive, delay, audit, restores, wakeSoon }: JobsOptions & { readonly wakeSoon: (job: string) => void },
): Job[] {
  const contextOf = (job: string): JobContext => {
    const units = jobUnits(openUnit, services, { job, audit });
    const mayCommit = restores === undefined || runsDuringFreeze.has(job);
    return {
      services,
      inUnit: inUnitOf(mayCommit ? units : committingUnlessFrozen(units, restores.freeze)),
    };
  };
  const openReader = async () => (await openUnit(false)).em;
  const brand = createBrand(services.prefix);
  const writePayload = (payload: string): string =>
    brand === undefined ? payload : JSON.stringify(brand.writeBody(JSON.parse(payload)));
  return [
    findDueWork({ ...contextOf(FIND_DUE_WORK), wakeSoon }),
    followTransactions(contextOf('follow-transactions')),
    readEffects(contextOf('read-effects')),
    followExternalSteps(contextOf('follow-external-steps')),
    followFiatDeposits(contextOf('follow-fiat-deposits')),
    followDeposits(contextOf('follow-deposits')),
    runAutomations({ ...contextOf('run-automations'), openReader }),
    followFiatCustomers(contextOf('follow-fiat-customers')),
    keepCards(contextOf('keep-cards')),
    runWalletActions(contextOf('run-wallet-actions')),
    deliverEvents({ ...contextOf(DELIVER_EVENTS), alive, delay, writePayload }),
    sweepExpired(contextOf(SWEEP_EXPIRED)),
    expireIntents(contextOf('expire-intents')),
    sequenceAudit({ ...contextOf(SEQUENCE_AUDIT), openReader, freeze: restores?.freeze }),
    pullBack(contextOf('pull-back-checks')),
    keepPartitions(contextOf(KEEP_PARTITIONS)),
  ];
}

/** The jobs that are idle while this process changes nothing. */
const awaitingChanges: readonly string[] = [FIND_DUE_WORK, SEQUENCE_AUDIT, SWEEP_EXPIRED, KEEP_PARTITIONS];

/**
 * Starts the background work.
 *
 * @param units opens units of work on the database.
 * @param observe called for every batch of a job.
 */
export function startBesideRequests(
  services: Services,
  units: OpenUnit,
  { observe, ...options }: JobsOptions & { readonly observe?: ObserveJob | undefined } = {},
): BesideRequests {
  const watch = (plain: OpenUnit): OpenUnit => {
    const watched = watching(plain, {
      committed(notes) {
        options.restores?.acknowledge(notes);
        if (notes.hasDeliveries) jobs.wake(DELIVER_EVENTS);
        if (notes.hasDeliveries || notes.lastRecord !== undefined || notes.changes.length > 0)
          for (const name of awaitingChanges) jobs.wakeSoon(name);
      },
    });
    // Read-only work has no commit to acknowledge or announce.
    return (write) => (write ? watched : plain)(write);
  };
  const openUnit = watch(units);
  const { alive, restores } = options;
  const all = jobsOf(services, watch(options.jobUnits ?? units), {
    ...options,
    wakeSoon: (name) => jobs.wakeSoon(name),
  });
  const held =
    restores === undefined ? all : [...all.map((job) => unlessFrozen(job, restores.freeze)), restores];
  const jobs = startJobs(held, services.log, observe);
  return { jobs: alive === undefined ? jobs : withHeartbeat(jobs, alive, services.log), openUnit };
}

/**
 * Jobs that run even during a write freeze, because the audit log must always order the records of what has happened.
 * `find-due-work` only reads and wakes the others.
 */
const runsDuringFreeze: ReadonlySet<string> = new Set([FIND_DUE_WORK, SEQUENCE_AUDIT]);

/** Jobs that run while an app leaves the database, because they do nothing for a single app. */
export const runsDuringMoves: ReadonlySet<string> = new Set([
  ...runsDuringFreeze,
  WATCH_RESTORES,
  KEEP_PARTITIONS,
]);

/** Wraps a job so that it does nothing during a write freeze. */
function unlessFrozen(job: Job, { reason }: WriteFreeze): Job {
  if (runsDuringFreeze.has(job.name)) return job;
  let wasFrozen = false;
  return {
    ...job,
    async run(again) {
      const isFrozen = reason() !== undefined;
      // What the job has cached may come from another database.
      if (isFrozen && !wasFrozen) await job.forget?.();
      wasFrozen = isFrozen;
      return isFrozen ? false : job.run(again);
    },
  };
}

/** Returns the units of work for jobs. They record the jobs' changes. */
export function jobUnits(
  units: OpenUnit,
  { clock }: Pick<Services, 'clock'>,
  { job, audit }: { readonly job: string; readonly audit: AuditTrail | undefined },
): OpenUnit {
  if (audit === undefined) return units;
  const describe = () => ({ atMs: clock.now(), by: { kind: 'job', job } as const, operation: job });
  return recordingChanges(units, audit, describe);
}

/**
 * Releases the claims of an earlier process with this process's id, which may have been killed. Must be called before
 * this process starts its work.
 */
export function releaseOwnClaims(
  services: Services,
  units: OpenUnit,
  audit?: AuditTrail | undefined,
): Promise<void> {
  const killed = { owner: services.processId, nowMs: services.clock.now() };
  const recorded = jobUnits(units, services, { job: 'release-claims', audit });
  return inUnitOf(recorded)((em, notes) => releaseClaims(services, { em, notes }, killed));
}

/**
 * Sends heartbeats in a loop of their own, which stops last, because this process is alive until its jobs have
 * finished.
 */
function withHeartbeat(jobs: JobRunner, alive: Heartbeat, log: Log): JobRunner {
  const beats = startJobs([alive], log);
  return {
    ...jobs,
    async stop() {
      await jobs.stop();
      await beats.stop();
      await alive
        .leave()
        .catch((err: unknown) =>
          log.warn({ err }, 'failed to deregister this process; others will take over its work later'),
        );
    },
  };
}
