import { hash } from 'node:crypto';
import { canonicalJson } from '../crypto/canonical-json.ts';
import type { SpendingTask } from './requested-slot.ts';

// What a vault remembers of signed requests for which something is filled in (a nonce, a blockhash), so that one request
// is not signed for any number of transactions.

/** One signature for a signed request. */
export interface Spending extends SpendingTask {
  readonly walletId: string;
  /** The reference of the key quorum that has signed the request. */
  readonly party: string;
  /** Everything that makes the request another one. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Unix ms; undefined when none was signed. */
  readonly expiryMs: number | undefined;
}

/** A request has been signed as often as it may be, or no more requests can be remembered. */
export class SpentRequestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SpentRequestError';
  }
}

export interface SpentRequestOptions {
  /** For how many transactions that may all take effect a request is signed. */
  readonly most: number;
  /** How many slots of all requests are remembered. Default: 100,000. */
  readonly room?: number;
}

/** CHOICE: 80 a second of 20 minutes, the longest expiry that production servers accept; some 65 MB. */
const ROOM = 100_000;

/** CHOICE: a request that loses its nonce to others more often than this is not signed any more. */
const MOST_LOST = 20;

/** CHOICE: a request that lasts longer is forgotten before others that expire earlier, if there is no room. */
const LONG_MS = 24 * 3_600_000;

/** As long as an expired request may be signed, and a minute for the clock. */
const KEPT_MS = 2 * 60_000;

/** How often all that is remembered is gone through, with room and without. */
const [SWEEP_MS, FULL_SWEEP_MS] = [10_000, 1_000];

interface Entry {
  readonly untilMs: number;
  /** The slots that count for this request. */
  readonly held: Set<string>;
  /** The highest fee at each slot that it was signed for, also at those that count for others by now. */
  readonly fees: Map<string, SpendingTask['fee']>;
}

export function createSpentRequests({ most, room = ROOM }: SpentRequestOptions) {
  const entries = new Map<string, Entry>();
  /** The digest of the request for which a slot counts. */
  const holders = new Map<string, string>();
  /** Slots of all requests, also those that count for others by now. */
  let remembered = 0;
  /** Requests that lasted longer than a day when they were seen last, the oldest first; from `next` on. */
  let lasting: string[] = [];
  let next = 0;
  let sweptMs = Number.NEGATIVE_INFINITY;

  function forget(digest: string, entry: Entry): void {
    entries.delete(digest);
    remembered -= entry.fees.size;
    for (const slot of entry.held) holders.delete(slot);
  }

  function sweep(nowMs: number): void {
    const sinceMs = nowMs - sweptMs;
    // A clock that was set back starts again.
    if (sinceMs >= 0 && sinceMs < (remembered < room ? SWEEP_MS : FULL_SWEEP_MS)) return;
    sweptMs = nowMs;
    lasting = [];
    next = 0;
    for (const [digest, entry] of entries) {
      if (entry.untilMs < nowMs) forget(digest, entry);
      else if (isLasting(entry, nowMs)) lasting.push(digest);
    }
  }

  /**
   * Takes no longer the more is remembered.
   *
   * INVARIANT: what expires within a day is never forgotten before.
   */
  function makeRoom(nowMs: number, spending: string): void {
    if (remembered < room) return;
    while (next < lasting.length) {
      const digest = lasting[next]!;
      next += 1;
      const entry = entries.get(digest);
      if (digest === spending || entry === undefined || !isLasting(entry, nowMs)) continue;
      forget(digest, entry);
      return;
    }
    throw new SpentRequestError('the signer remembers as many requests as it has room for; try again later');
  }

  /**
   * Counts a signature for its request, unless that was signed for the same slot before. The slot is a nonce, or the
   * whole transaction on chains without nonces. The chain accepts one transaction for each slot, so a slot counts for
   * one request only: the last one that was signed for it. A request that loses a nonce to another one of the same party
   * can therefore be signed for the next nonce.
   *
   * INVARIANT: all requests together take effect no more often than the sum of what each of them may.
   *
   * INVARIANT: what was forgotten because it has expired is not counted again from the beginning, however long the
   * caller took until now.
   *
   * @throws SpentRequestError, and then nothing is counted.
   */
  function spend({ walletId, party, request, expiryMs, ...task }: Spending, nowMs: number): void {
    const untilMs = expiryMs === undefined ? Number.POSITIVE_INFINITY : expiryMs + KEPT_MS;
    if (untilMs < nowMs) throw new SpentRequestError('this request has expired; sign it again');
    sweep(nowMs);
    const digest = hash('sha256', canonicalJson(request), 'base64');
    // Short, whatever the length of what a caller has signed.
    const slot = hash('sha256', `${walletId} ${party} ${task.slot}`, 'base64');
    const known = entries.get(digest);
    const holder = holders.get(slot);
    const { held, fees } = known ?? newEntry();
    if (holder !== digest && held.size >= most * task.atOnce) throw repeated(held.size);
    if (!fees.has(slot) && fees.size >= (most + MOST_LOST) * task.atOnce) throw repeated(fees.size);
    requireFee(fees, slot, task);
    if (!fees.has(slot)) {
      makeRoom(nowMs, digest);
      remembered += 1;
    }
    if (known === undefined) {
      const entry = { untilMs, held, fees };
      entries.set(digest, entry);
      if (isLasting(entry, nowMs)) lasting.push(digest);
    }
    if (holder !== undefined && holder !== digest) entries.get(holder)?.held.delete(slot);
    holders.set(slot, digest);
    held.add(slot);
    const before = fees.get(slot);
    if (before === undefined || (task.fee?.amount ?? 0n) > before.amount) fees.set(slot, task.fee);
  }

  return {
    spend,
    /** How much is remembered. */
    size: () => ({ requests: entries.size, slots: holders.size }),
  };
}

function newEntry(): Pick<Entry, 'held' | 'fees'> {
  return { held: new Set(), fees: new Map() };
}

function isLasting({ untilMs }: Entry, nowMs: number): boolean {
  return untilMs > nowMs + LONG_MS + KEPT_MS;
}

/**
 * All that may take effect for a request pays no more than one transaction may. Of chains with different ceilings, the
 * shares of them count.
 */
function requireFee(fees: Entry['fees'], slot: string, { fee }: SpendingTask): void {
  if (fee === undefined) return;
  let sum = fee.amount;
  for (const [other, paid] of fees) if (other !== slot) sum += inTermsOf(fee.ceiling, paid);
  if (sum <= fee.ceiling) return;
  throw new SpentRequestError(
    `with what this request was signed for before, the fee would be ${sum} wei, more than the ceiling of ${fee.ceiling}; sign the request again, with another expiry`,
  );
}

/** As much of this ceiling as was paid of another one, rounded up. */
function inTermsOf(ceiling: bigint, paid: SpendingTask['fee']): bigint {
  if (paid === undefined || paid.amount === 0n) return 0n;
  return (paid.amount * ceiling + paid.ceiling - 1n) / paid.ceiling;
}

function repeated(count: number): SpentRequestError {
  const times = count === 1 ? 'a transaction' : `${count} transactions`;
  return new SpentRequestError(
    `this request was already signed for ${times}; sign it again, with another expiry`,
  );
}
