import type { AnsweredRequest } from '../../ports/requests.ts';
import { createByteQueue, packRequest, unpackRequest } from './packed-request.ts';

interface RequestLogLimits {
  readonly requests: number;
  /** The maximum size of the packed requests. Their positions and the index of causes are not counted. */
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
   * Returns the sequence numbers of the oldest and the newest stored request. If none is stored, `oldest` is `newest`
   * plus one.
   */
  range(): { readonly oldest: number; readonly newest: number };
  /** Returns the request with this sequence number, or undefined if it was dropped. */
  at(sequence: number): AnsweredRequest | undefined;
  find(id: string): RecordedRequest | undefined;
  /**
   * Returns the id of the stored request that recorded an event, stored a transaction, or started a wallet action or
   * an intent with this id. Returns undefined for anything else, such as the events of jobs.
   */
  causeOf(id: string): string | undefined;
  /** Returns the requests from a sequence number on, for `restore`. */
  pack(from: number): Buffer;
  /**
   * Adds the requests that another log has packed.
   *
   * @throws RangeError or SyntaxError for bytes that no log has packed.
   */
  restore(packed: Buffer): void;
  /** Removes all requests and returns how many there were. */
  clear(): number;
  /** Resolves when the next request is recorded, after `durationMs`, or when `signal` is aborted. */
  next(durationMs: number, signal: AbortSignal): Promise<void>;
}

/** The request that caused a resource, by the id of the resource. */
interface Cause {
  readonly sequence: number;
  readonly requestId: string;
}

/** The bytes in front of each request in the result of `pack`: its length. */
const LENGTH_BYTES = 4;

/** Up to this number of stored causes, the causes of dropped requests are not deleted. */
const FEW_CAUSES = 20_000;

/** The members of responses that contain the id of what a request has started, by the prefix of the event types. */
const startedIds = { 'wallet_action.': 'id', 'intent.': 'intent_id' } as const;

/** Returns the ids of everything that a request has caused: events, transactions, and its wallet action or intent. */
function idsCausedBy({ effects, responseText }: AnsweredRequest): string[] {
  const events = effects.flatMap((each) => each.events);
  const ids = [...events.map(({ id }) => id), ...effects.flatMap(({ transactions }) => transactions)];
  const members = Object.entries(startedIds)
    .filter(([prefix]) => events.some(({ type }) => type.startsWith(prefix)))
    .map(([, member]) => member);
  if (members.length === 0 || responseText === undefined) return ids;
  const response = JSON.parse(responseText) as Readonly<Record<string, unknown>>;
  const started = members.map((member) => response[member]);
  return [...ids, ...started.filter((id) => typeof id === 'string')];
}

/**
 * Creates an empty log. `newName` generates its name.
 *
 * INVARIANT: after `record`, the log keeps no reference to the request.
 */
export function createRequestLog(newName: () => string, limits = requestLogLimits): RequestLog {
  const packed = createByteQueue();
  /** Data about each request, at its sequence number modulo the limit. */
  const slots = {
    position: new Float64Array(limits.requests),
    length: new Uint32Array(limits.requests),
  };
  let name = newName();
  let oldest = 1;
  let newest = 0;
  let bytes = 0;
  let waiting: (() => void)[] = [];
  const causes = new Map<string, Cause>();
  let mostCauses = FEW_CAUSES;

  /**
   * Records what a request has caused. Deletes the causes of dropped requests only from time to time, so that this
   * costs little per request.
   */
  const noteCauses = (answered: AnsweredRequest): void => {
    for (const id of idsCausedBy(answered)) causes.set(id, { sequence: newest, requestId: answered.id });
    if (causes.size <= mostCauses) return;
    for (const [id, { sequence }] of causes) if (sequence < oldest) causes.delete(id);
    mostCauses = Math.max(FEW_CAUSES, 2 * causes.size);
  };

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

  const record = (answered: AnsweredRequest): void => {
    add(answered);
    noteCauses(answered);
    if (waiting.length > 0) wake();
  };

  return {
    record,
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
    causeOf(id) {
      const cause = causes.get(id);
      return cause !== undefined && cause.sequence >= oldest ? cause.requestId : undefined;
    },
    pack(from) {
      const parts: Buffer[] = [];
      for (let sequence = Math.max(from, oldest); sequence <= newest; sequence += 1) {
        const slot = sequence % limits.requests;
        const length = Buffer.alloc(LENGTH_BYTES);
        length.writeUInt32LE(slots.length[slot]!);
        parts.push(length, packed.read(slots.position[slot]!, slots.length[slot]!));
      }
      return Buffer.concat(parts);
    },
    restore(bytes) {
      for (let position = 0; position < bytes.length; ) {
        const start = position + LENGTH_BYTES;
        position = start + bytes.readUInt32LE(position);
        if (position > bytes.length) throw new RangeError('a request in the file is not complete');
        record(unpackRequest(bytes.subarray(start, position)));
      }
    },
    clear() {
      const count = newest - oldest + 1;
      packed.clear();
      causes.clear();
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
