import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Services } from '../operation-context.ts';
import type { Log } from '../ports/log.ts';

export interface JobContext {
  readonly services: Services;
  /** Runs `work` in its own transaction, committed when it resolves. */
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

const EVERY_MS = 60_000;

/** Reports that something outside could not be asked. */
export type ReportOutage = (subject: string, err: unknown) => void;

/**
 * Logs failures once a minute for each subject, such as a chain, with their number: while it hangs, everything that
 * waits for it fails again and again. An outage needs no stack.
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
