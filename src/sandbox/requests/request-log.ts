import type { AnsweredRequest } from '../../ports/requests.ts';
import { createByteQueue, packRequest, unpackRequest } from './packed-request.ts';

interface RequestLogLimits {
  readonly requests: number;
  /** The maximum size of the stored requests, without two numbers for each. */
  readonly bytes: number;
}

const requestLogLimits: RequestLogLimits = { requests: 10_000, bytes: 32 * 1024 * 1024 };

interface RecordedRequest {
  readonly sequence: number;
  readonly answered: AnsweredRequest;
}

/** The latest requests of a sandbox, in memory. */
export interface RequestLog {
  record(answered: AnsweredRequest): void;
  /** Returns the log's name, which changes when the log is emptied. */
  name(): string;
  /**
   * Returns the sequences of the oldest and the newest stored request. When none is stored, `oldest` is one more than
   * `newest`.
   */
  range(): { readonly oldest: number; readonly newest: number };
  /** Returns undefined when the request was dropped. */
  at(sequence: number): AnsweredRequest | undefined;
  find(id: string): RecordedRequest | undefined;
  /** Removes all requests and returns how many there were. */
  clear(): number;
  /** Resolves with the next request, after `durationMs`, or when `signal` is aborted. */
  next(durationMs: number, signal: AbortSignal): Promise<void>;
}

/**
 * Creates an empty log. `newName` draws the name of a log.
 *
 * INVARIANT: after `record`, the log holds no reference to the request.
 */
export function createRequestLog(newName: () => string, limits = requestLogLimits): RequestLog {
  const packed = createByteQueue();
  /** Facts about each request, at its sequence modulo the limit. */
  const slots = {
    position: new Float64Array(limits.requests),
    length: new Uint32Array(limits.requests),
  };
  let name = newName();
  let oldest = 1;
  let newest = 0;
  let bytes = 0;
  let waiting: (() => void)[] = [];

  const at = (sequence: number): AnsweredRequest | undefined => {
    if (sequence < oldest || sequence > newest) return undefined;
    const slot = sequence % limits.requests;
    return unpackRequest(packed.read(slots.position[slot]!, slots.length[slot]!));
  };

  const dropOldest = (): void => {
    const length = slots.length[oldest % limits.requests]!;
    packed.drop(length);
    bytes -= length;
    oldest += 1;
  };

  const add = (answered: AnsweredRequest): void => {
    const position = packed.end();
    const length = packRequest(answered, packed);
    if (newest - oldest + 1 === limits.requests) dropOldest();
    newest += 1;
    const slot = newest % limits.requests;
    slots.position[slot] = position;
    slots.length[slot] = length;
    bytes += length;
    // A request that is larger than the whole log is dropped too.
    while (bytes > limits.bytes) dropOldest();
  };

  const wake = (): void => {
    const resolved = waiting;
    waiting = [];
    for (const resolve of resolved) resolve();
  };

  return {
    record(answered) {
      add(answered);
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
      packed.clear();
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
