import type { Services, UnitWork } from '../ports/operation-context.ts';
import type { Log } from '../ports/runtime.ts';
import type { Job } from './runner.ts';

export interface JobContext {
  readonly services: Services;
  /** Runs `work` in a separate transaction, which is committed when `work` resolves. */
  inUnit<T>(work: UnitWork<T>): Promise<T>;
}

const EVERY_MS = 60_000;

/** Logs that an external system could not be reached. */
export type ReportOutage = (subject: string, err: unknown) => void;

/**
 * Returns a function that logs failures at most once a minute per subject, such as a chain, with their number. While a
 * subject hangs, everything that waits for it fails repeatedly. The log line of an outage omits the stack.
 */
export function outagesIn(log: Log, message: string): ReportOutage {
  const reports = new Map<string, { atMs: number; unreported: number }>();
  return (subject, err) => {
    const nowMs = performance.now();
    const report = reports.get(subject) ?? { atMs: Number.NEGATIVE_INFINITY, unreported: 0 };
    reports.set(subject, report);
    report.unreported += 1;
    if (nowMs - report.atMs < EVERY_MS) return;
    const { isOutage, isUnavailable, message: reason } = err as Error & Record<string, unknown>;
    const isExpected = isOutage === true || isUnavailable === true;
    log.warn({ subject, times: report.unreported, ...(isExpected ? { reason } : { err }) }, message);
    report.atMs = nowMs;
    report.unreported = 0;
  };
}

/** Returns a function that runs work when fewer than `max` others run, in the order of the calls. */
export function limitTo(max: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < max) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Pass the place on to the next caller without freeing it, so that a new call cannot take it first.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

/** Runs at most `most` units of work at a time. Other units wait in order of arrival. */
export function fewAtOnce(inUnit: JobContext['inUnit'], most: number): JobContext['inUnit'] {
  const inTurn = limitTo(most);
  return (work) => inTurn(() => inUnit(work));
}

/** A job that calls external systems, such as chains and providers. Each external system is a subject. */
interface WorkApart<Row> extends Pick<Job, 'name' | 'everyMs' | 'idleMs'> {
  /** Claims at most `limit` due rows, except those of the subjects in `busy`. */
  claim(busy: readonly string[], limit: number): Promise<readonly Row[]>;
  readonly batch: number;
  readonly subjectOf: (row: Row) => string;
  /** Does the work. Returns whether more can be done immediately. */
  work(rows: readonly Row[]): Promise<boolean>;
}

/**
 * Creates a job that works on each subject independently, so that a subject that hangs does not delay the others. A
 * batch waits for a subject only as long as the job would pause anyway. After that, the subject's work continues beside
 * the next batches, which claim no rows of it until the work has ended.
 */
export function jobApart<Row>({ name, everyMs, idleMs, claim, batch, subjectOf, work }: WorkApart<Row>): Job {
  const underWay = new Map<string, Promise<void>>();
  let hasMore = false;
  let failures: unknown[] = [];
  let wake: () => void = () => undefined;

  const begin = (subject: string, rows: readonly Row[], isFull: boolean): void => {
    const end = async (): Promise<void> => {
      try {
        if ((await work(rows)) || isFull) hasMore = true;
      } catch (error) {
        failures.push(error);
      } finally {
        underWay.delete(subject);
        if (hasMore || failures.length > 0 || underWay.size === 0) wake();
      }
    };
    underWay.set(subject, end());
  };
  const rest = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    const timer = setTimeout(resolve, everyMs);
    if (underWay.size > 0 && !hasMore && failures.length === 0) await promise;
    clearTimeout(timer);
  };
  const finish = async (): Promise<void> => void (await Promise.all(underWay.values()));

  return {
    name,
    everyMs,
    ...(idleMs !== undefined && { idleMs }),
    async run() {
      for (let isFull = true; isFull; ) {
        const rows = await claim([...underWay.keys()], batch);
        isFull = rows.length === batch;
        for (const [subject, group] of Map.groupBy(rows, subjectOf)) begin(subject, group, isFull);
      }
      await rest();
      // Throw the error of work that an earlier batch left running, so that the job pauses longer.
      const [failure] = failures;
      failures = [];
      if (failure !== undefined) throw failure;
      const isUnfinished = hasMore || underWay.size > 0;
      hasMore = false;
      return isUnfinished;
    },
    stop: finish,
    rest: finish,
    forget: finish,
  };
}
