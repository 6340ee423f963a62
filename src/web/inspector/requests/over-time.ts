import type { RecordedRequest } from '../../../sandbox/generated/schemas.ts';
import type { Bar } from '../parts/bars.ts';

const MINUTE_MS = 60_000;
const BARS = 60;
const MARK_MS = 3 * MINUTE_MS;
/**
 * The number of bars at each end of the axis that have no mark. There, a mark would cross the edge or cover the mark of
 * the end.
 */
const UNMARKED = 8;
const BAR_MS = (15 * MINUTE_MS) / BARS;

/** A bar chart of the last 15 minutes: the requests in each quarter of a minute, by class of status. */
export interface RequestsOverTime {
  readonly bars: readonly Bar[];
  /** The time at which the first bar begins, by the machine's clock. */
  readonly startMs: number;
  readonly barMs: number;
}

/** Counts requests over the 15 minutes up to `nowMs`, by the machine's clock. */
export function requestsOverTime(requests: readonly RecordedRequest[], nowMs: number): RequestsOverTime {
  const endMs = Math.ceil((nowMs + 1) / BAR_MS) * BAR_MS;
  const startMs = endMs - BARS * BAR_MS;
  const counts = Array.from({ length: BARS }, () => ({ good: 0, warn: 0, bad: 0 }));
  for (const { machine_received_at_ms: atMs, status } of requests) {
    const bar = counts[Math.floor((atMs - startMs) / BAR_MS)];
    if (bar === undefined) continue;
    bar[status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good'] += 1;
  }
  const bars = counts.map(({ good, warn, bad }, index) => {
    const atMs = startMs + index * BAR_MS;
    const title = new Date(atMs).toISOString().slice(11, 19);
    const isMarked = atMs % MARK_MS === 0 && index >= UNMARKED && index <= BARS - UNMARKED;
    return {
      title,
      parts: [
        { tone: 'good' as const, count: good },
        { tone: 'warn' as const, count: warn },
        { tone: 'bad' as const, count: bad },
      ],
      ...(isMarked ? { mark: title.slice(0, 5) } : {}),
    };
  });
  return { bars, startMs, barMs: BAR_MS };
}
