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

const SWEEP_MS = 10_000;

interface Entry {
  readonly untilMs: number;
  /** The slots that count for this request. */
  readonly held: Set<string>;
  /** The highest fee at each slot that it was signed for, also at those that count for others by now. */
  readonly fees: Map<string, bigint>;
}

export function createSpentRequests({ most, room = ROOM }: SpentRequestOptions) {
  const entries = new Map<string, Entry>();
  /** The digest of the request for which a slot counts. */
  const holders = new Map<string, string>();
  /** Slots of all requests, also those that count for others by now. */
  let remembered = 0;
  let sweptMs = Number.NEGATIVE_INFINITY;

  function forget(digest: string, entry: Entry): void {
    entries.delete(digest);
    remembered -= entry.fees.size;
    for (const slot of entry.held) holders.delete(slot);
  }

  function sweep(nowMs: number): void {
    if (remembered < room && nowMs < sweptMs + SWEEP_MS) return;
    if (nowMs === sweptMs) return;
    sweptMs = nowMs;
    for (const [digest, entry] of entries) if (entry.untilMs < nowMs) forget(digest, entry);
  }

  /** INVARIANT: what expires within a day is never forgotten before. */
  function makeRoom(nowMs: number, spending: string): void {
    if (remembered < room) return;
    for (const [digest, entry] of entries) {
      if (digest === spending || entry.untilMs <= nowMs + LONG_MS + KEPT_MS) continue;
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
   * @throws SpentRequestError, and then nothing is counted.
   */
  function spend({ walletId, party, request, expiryMs, ...task }: Spending, nowMs: number): void {
    sweep(nowMs);
    const digest = hash('sha256', canonicalJson(request), 'base64');
    // Short, whatever the length of what a caller has signed.
    const slot = hash('sha256', `${walletId} ${party} ${task.slot}`, 'base64');
    const known = entries.get(digest);
    const holder = holders.get(slot);
    const { held, fees } = known ?? { held: new Set<string>(), fees: new Map<string, bigint>() };
    if (holder !== digest && held.size >= most * task.atOnce) throw repeated(held.size);
    if (!fees.has(slot) && fees.size >= (most + MOST_LOST) * task.atOnce) throw repeated(fees.size);
    requireFee(fees, slot, task);
    if (!fees.has(slot)) {
      makeRoom(nowMs, digest);
      remembered += 1;
    }
    if (known === undefined) {
      const untilMs = expiryMs === undefined ? Number.POSITIVE_INFINITY : expiryMs + KEPT_MS;
      entries.set(digest, { untilMs, held, fees });
    }
    if (holder !== undefined && holder !== digest) entries.get(holder)?.held.delete(slot);
    holders.set(slot, digest);
    held.add(slot);
    const before = fees.get(slot) ?? 0n;
    const fee = task.fee?.amount ?? 0n;
    fees.set(slot, fee > before ? fee : before);
  }

  return {
    spend,
    /** How much is remembered. */
    size: () => ({ requests: entries.size, slots: holders.size }),
  };
}

/** All that may take effect for a request pays no more than one transaction may. */
function requireFee(fees: ReadonlyMap<string, bigint>, slot: string, { fee }: SpendingTask): void {
  if (fee === undefined) return;
  let sum = fee.amount;
  for (const [other, amount] of fees) if (other !== slot) sum += amount;
  if (sum <= fee.ceiling) return;
  throw new SpentRequestError(
    `with what this request was signed for before, the fee would be ${sum} wei, more than the ceiling of ${fee.ceiling}; sign the request again, with another expiry`,
  );
}

function repeated(count: number): SpentRequestError {
  const times = count === 1 ? 'a transaction' : `${count} transactions`;
  return new SpentRequestError(
    `this request was already signed for ${times}; sign it again, with another expiry`,
  );
}
