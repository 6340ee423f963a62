import type { AnsweredRequest } from '../../ports/request-recorder.ts';

/** How much a log keeps. */
interface RequestLogLimits {
  readonly requests: number;
  /** Of headers, bodies and paths, about. */
  readonly bytes: number;
}

const requestLogLimits: RequestLogLimits = { requests: 10_000, bytes: 64 * 1024 * 1024 };

/** A recorded request and its position. */
interface RecordedRequest {
  readonly sequence: number;
  readonly answered: AnsweredRequest;
}

/** The latest requests of a sandbox, in memory. */
export interface RequestLog {
  record(answered: AnsweredRequest): void;
  /** Changes when the log is emptied. */
  name(): string;
  /** Sequences of the oldest request that is kept and of the newest; the oldest is one more when there is none. */
  range(): { readonly oldest: number; readonly newest: number };
  /** Undefined for a request that is not kept any more. */
  at(sequence: number): AnsweredRequest | undefined;
  /** The newest request with this id: a seeded sandbox repeats its ids after a reset. */
  find(id: string): RecordedRequest | undefined;
  /** Returns how many requests there were. */
  clear(): number;
  /** Resolves with the next request, after `durationMs`, or when `signal` is aborted. */
  next(durationMs: number, signal: AbortSignal): Promise<void>;
}

/**
 * Creates an empty log. `newName` draws the name of a log.
 *
 * HOT: `record` runs for every request (bench `recorder`): it stores a reference and adds up lengths.
 */
export function createRequestLog(newName: () => string, limits = requestLogLimits): RequestLog {
  const kept: (AnsweredRequest | undefined)[] = [];
  let name = newName();
  let oldest = 1;
  let newest = 0;
  let bytes = 0;
  let waiting: (() => void)[] = [];

  const at = (sequence: number): AnsweredRequest | undefined =>
    sequence < oldest || sequence > newest ? undefined : kept[sequence % limits.requests];

  const dropOldest = (): void => {
    bytes -= sizeOf(at(oldest)!);
    kept[oldest % limits.requests] = undefined;
    oldest += 1;
  };

  const wake = (): void => {
    const resolved = waiting;
    waiting = [];
    for (const resolve of resolved) resolve();
  };

  return {
    record(answered) {
      bytes += sizeOf(answered);
      if (newest - oldest + 1 === limits.requests) dropOldest();
      newest += 1;
      kept[newest % limits.requests] = answered;
      while (bytes > limits.bytes) dropOldest();
      if (waiting.length > 0) wake();
    },
    name: () => name,
    range: () => ({ oldest, newest }),
    at,
    find(id) {
      for (let sequence = newest; sequence >= oldest; sequence -= 1) {
        const answered = at(sequence)!;
        if (answered.id === id) return { sequence, answered };
      }
      return undefined;
    },
    clear() {
      const count = newest - oldest + 1;
      kept.length = 0;
      [name, oldest, newest, bytes] = [newName(), 1, 0, 0];
      wake();
      return count;
    },
    next: (durationMs, signal) =>
      new Promise((resolve) => {
        const finish = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', finish);
          waiting = waiting.filter((other) => other !== finish);
          resolve();
        };
        const timer = setTimeout(finish, durationMs);
        signal.addEventListener('abort', finish);
        waiting.push(finish);
        if (signal.aborted) finish();
      }),
  };
}

// The object itself, its headers and those of the response.
const FIXED_BYTES = 2_048;

function sizeOf({ rawBody, target, responseText }: AnsweredRequest): number {
  return FIXED_BYTES + rawBody.length + target.length + (responseText?.length ?? 0);
}
