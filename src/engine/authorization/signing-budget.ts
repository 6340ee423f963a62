import { hash } from 'node:crypto';
import { canonicalJson } from '../crypto/canonical-json.ts';
import type { SpendingTask } from './requested/built-part.ts';

// Limits for how many transactions a vault signs one request. A request leaves fields open, such as the nonce or the
// blockhash; without a limit, one request could be signed for any number of transactions.

/** One signature for a signed request. */
export interface Spending extends SpendingTask {
  readonly walletId: string;
  /** The reference of the key quorum that has signed the request. */
  readonly party: string;
  /** The fields that distinguish the request from others. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Unix ms; undefined when none was signed. */
  readonly expiryMs: number | undefined;
}

/** The request has reached its limit, or the memory for requests is full. */
export class SigningBudgetError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SigningBudgetError';
  }
}

export interface SigningBudgetOptions {
  /** The number of transactions that a request may be signed for and that can all take effect. */
  readonly most: number;
  /** The number of slots, of all requests together, that are kept. Default: 100,000. */
  readonly room?: number;
  /** The results of `spend` from before a restart, in order. */
  readonly recorded?: Iterable<RecordedRequest>;
}

/**
 * A stored request; the last record of a digest counts. It consists of digests and amounts only. Shape: each of `slots`
 * has its name, whether it counts for this request, and the highest fee that was signed for it (wei, or null). Without
 * slots, the request is dropped.
 */
export interface RecordedRequest {
  readonly digest: string;
  /** Unix ms; null without an expiry. */
  readonly untilMs: number | null;
  readonly atOnce: number;
  readonly slots: readonly (readonly [name: string, isHeld: boolean, fee: string | null])[];
}

/** Stores for how many transactions requests were signed. */
export interface SigningJournal {
  /** The records from before. */
  readonly recorded: Iterable<RecordedRequest>;
  /** Resolves once the changes are stored. */
  record(changes: readonly RecordedRequest[], all: () => readonly RecordedRequest[]): Promise<void>;
}

/** CHOICE: 80 a second of 20 minutes, the longest expiry that production servers accept; some 85 MB. */
const ROOM = 100_000;

/** CHOICE: a request that loses its nonce to others more often than this is not signed any more. */
const MOST_LOST = 20;

/** CHOICE: when full, requests that expire more than a day from now are evicted first. */
const LONG_MS = 24 * 3_600_000;

/** As long as an expired request may be signed, and a minute for the clock. */
const KEPT_MS = 2 * 60_000;

/** The sweep interval, normally and when full. */
const [SWEEP_MS, FULL_SWEEP_MS] = [10_000, 1_000];

/** CHOICE: the most requests that are searched for one that can take over a nonce; a host has fewer servers. */
const MOST_SEARCHED = 100;

const NO_ROOM = 'the signer remembers as many requests as it has room for; try again later';

/** A signed request. */
interface Entry {
  readonly digest: string;
  readonly untilMs: number;
  readonly atOnce: number;
  /** The most slots that may count for it. */
  readonly most: number;
  /** The slots that count for it. */
  readonly held: Set<Slot>;
  /** The highest fee at each slot that it was signed for, including slots that now count for other requests. */
  readonly fees: Map<Slot, bigint | undefined>;
}

/** A nonce, or a whole transaction on chains without nonces: it takes effect at most once. */
interface Slot {
  readonly name: string;
  /** The request for which it counts, if that is still stored. */
  holder: Entry | undefined;
  readonly signedFor: Set<Entry>;
}

export function createSigningBudget({ most, room = ROOM, recorded = [] }: SigningBudgetOptions) {
  const entries = new Map<string, Entry>();
  const slots = new Map<string, Slot>();
  /** The slots of each request, including those that now count for other requests. */
  let remembered = 0;
  /** Requests that lasted longer than a day when they were seen last, the oldest first; from `next` on. */
  let lasting: Entry[] = [];
  let next = 0;
  let sweptMs = Number.NEGATIVE_INFINITY;

  function forget(entry: Entry): void {
    entries.delete(entry.digest);
    remembered -= entry.fees.size;
    for (const slot of entry.fees.keys()) {
      slot.signedFor.delete(entry);
      if (slot.holder === entry) slot.holder = undefined;
      if (slot.signedFor.size === 0) slots.delete(slot.name);
    }
  }

  function sweep(nowMs: number): void {
    const sinceMs = nowMs - sweptMs;
    // A clock that was set back starts again.
    if (sinceMs >= 0 && sinceMs < (remembered < room ? SWEEP_MS : FULL_SWEEP_MS)) return;
    sweptMs = nowMs;
    lasting = [];
    next = 0;
    for (const entry of entries.values()) {
      if (entry.untilMs < nowMs) forget(entry);
      else if (isLasting(entry, nowMs)) lasting.push(entry);
    }
  }

  /**
   * The request to evict when full; undefined if none may be. The cost does not grow with the number of requests.
   *
   * INVARIANT: a request that expires within a day is never evicted before it has expired.
   */
  function oldestLasting(nowMs: number, spending: Entry): Entry | undefined {
    const isLeft = (entry: Entry) => entries.get(entry.digest) === entry && isLasting(entry, nowMs);
    while (next < lasting.length && !isLeft(lasting[next]!)) next += 1;
    let at = next;
    // A request must not evict itself.
    while (at < lasting.length && (lasting[at] === spending || !isLeft(lasting[at]!))) at += 1;
    return lasting[at];
  }

  function entryOf({ request, role, expiryMs, atOnce }: Spending): Entry {
    const asked = role === undefined ? request : { ...request, role };
    const digest = hash('sha256', canonicalJson(asked), 'base64');
    const untilMs = untilOf(expiryMs);
    return entries.get(digest) ?? newEntry(digest, untilMs, atOnce);
  }

  function newEntry(digest: string, untilMs: number, atOnce: number): Entry {
    return { digest, untilMs, atOnce, most: most * atOnce, held: new Set(), fees: new Map() };
  }

  function restore({ digest, untilMs, atOnce, slots: kept }: RecordedRequest): void {
    const before = entries.get(digest);
    if (before !== undefined) forget(before);
    if (kept.length === 0) return;
    const entry = newEntry(digest, untilMs ?? Number.POSITIVE_INFINITY, atOnce);
    entries.set(digest, entry);
    for (const [name, isHeld, fee] of kept) {
      const slot = slots.get(name) ?? { name, holder: undefined, signedFor: new Set<Entry>() };
      slots.set(name, slot);
      slot.signedFor.add(entry);
      entry.fees.set(slot, fee === null ? undefined : BigInt(fee));
      if (isHeld) giveTo(entry, slot);
    }
    remembered += kept.length;
  }

  /**
   * Counts a signature for its request, unless that was signed for the same slot before. The slot is a nonce, or the
   * whole transaction on chains without nonces. The chain accepts one transaction for each slot, so a slot counts for
   * one of the requests only that were signed for it. A request that loses a nonce to another one of the same party can
   * therefore be signed for the next nonce. A nonce that is signed for several roles counts for each of them: what allows a
   * payment makes no room for another payment.
   *
   * INVARIANT: all requests together take effect no more often than the sum of what each of them may: each slot counts
   * for a request that was signed for it, and for none more than it may have.
   *
   * INVARIANT: what was forgotten because it has expired is not counted again from the beginning, however long the
   * caller took until now.
   *
   * Result: all that this has changed.
   *
   * @throws SigningBudgetError, and then nothing is counted.
   */
  function spend(spending: Spending, nowMs: number): RecordedRequest[] {
    const { walletId, party, role = 'pays', fee } = spending;
    if (untilOf(spending.expiryMs) < nowMs)
      throw new SigningBudgetError('this request has expired; sign it again');
    sweep(nowMs);
    const entry = entryOf(spending);
    const { held, fees } = entry;
    // Short, whatever the length of what a caller has signed.
    const name = hash('sha256', `${walletId} ${party} ${role} ${spending.slot}`, 'base64');
    const slot = slots.get(name) ?? { name, holder: undefined, signedFor: new Set<Entry>() };
    if (!fees.has(slot) && fees.size >= entry.most + MOST_LOST * spending.atOnce) throw repeated(fees.size);
    requireFee(fees, slot, spending);
    const needsRoom = !fees.has(slot) && remembered >= room;
    const leaving = needsRoom ? oldestLasting(nowMs, entry) : undefined;
    const lacksRoom = needsRoom && leaving === undefined;
    const changed = new Set([entry]);
    if (slot.holder !== entry && held.size >= entry.most && (lacksRoom || !handsOver(entry, slot, changed))) {
      throw repeated(held.size);
    }
    if (lacksRoom) throw new SigningBudgetError(NO_ROOM);
    if (leaving !== undefined) forget(leaving);
    if (!fees.has(slot)) remembered += 1;
    if (!entries.has(entry.digest)) {
      entries.set(entry.digest, entry);
      if (isLasting(entry, nowMs)) lasting.push(entry);
    }
    slots.set(name, slot);
    slot.signedFor.add(entry);
    giveTo(entry, slot);
    const before = fees.get(slot);
    if (before === undefined || (fee?.amount ?? 0n) > before) fees.set(slot, fee?.amount);
    const forgotten = leaving === undefined ? [] : [{ ...recordOf(leaving), slots: [] }];
    return [...forgotten, ...[...changed].map(recordOf)];
  }

  for (const each of recorded) restore(each);

  return {
    spend,
    /** All stored requests. */
    all: () => [...entries.values()].map(recordOf),
    /** The numbers of stored requests and slots. */
    size: () => ({ requests: entries.size, slots: slots.size }),
  };
}

function recordOf({ digest, untilMs, atOnce, held, fees }: Entry): RecordedRequest {
  const slots = [...fees].map(
    ([slot, fee]) => [slot.name, held.has(slot), fee === undefined ? null : String(fee)] as const,
  );
  return { digest, untilMs: Number.isFinite(untilMs) ? untilMs : null, atOnce, slots };
}

function giveTo(entry: Entry, slot: Slot): void {
  slot.holder?.held.delete(slot);
  slot.holder = entry;
  entry.held.add(slot);
}

/**
 * Makes it possible that another slot counts for the request, if all do that may: one of its slots then counts for another
 * request that was signed for it too and may have one more, or that hands one over in turn.
 *
 * NOTE: of servers that sign for the same nonce, the first to commit wins, which the signer does not see. The others ask
 * for the next nonce, also the one that was signed last. A caller who has the other request could have it signed again,
 * with the same effect, so this allows nothing more.
 *
 * @param wanted will count for the request, and not for the one for which it counts now.
 * @param changed gets each request for which another slot counts then. One that only loses a slot need not be recorded:
 * the record of the other one takes the slot.
 */
function handsOver(
  entry: Entry,
  wanted: Slot,
  changed: Set<Entry>,
  searched: Set<Entry> = new Set([entry]),
): boolean {
  for (const slot of entry.held) {
    for (const other of slot.signedFor) {
      if (searched.has(other)) continue;
      if (searched.size >= MOST_SEARCHED) return false;
      searched.add(other);
      const count = other.held.size - (wanted.holder === other ? 1 : 0);
      if (count >= other.most && !handsOver(other, wanted, changed, searched)) continue;
      giveTo(other, slot);
      changed.add(other);
      return true;
    }
  }
  return false;
}

function untilOf(expiryMs: number | undefined): number {
  return expiryMs === undefined ? Number.POSITIVE_INFINITY : expiryMs + KEPT_MS;
}

function isLasting({ untilMs }: Entry, nowMs: number): boolean {
  return untilMs > nowMs + LONG_MS + KEPT_MS;
}

/**
 * All that may take effect for a request pays no more than one transaction may: the request is of one chain, so all of it
 * has the same ceiling.
 */
function requireFee(fees: Entry['fees'], slot: Slot, { fee }: SpendingTask): void {
  if (fee === undefined) return;
  let sum = fee.amount;
  for (const [other, paid] of fees) if (other !== slot) sum += paid ?? 0n;
  if (sum <= fee.ceiling) return;
  throw new SigningBudgetError(
    `with what this request was signed for before, the fee would be ${sum} wei, more than the ceiling of ${fee.ceiling}; sign the request again, with another expiry`,
  );
}

function repeated(count: number): SigningBudgetError {
  const times = count === 1 ? 'a transaction' : `${count} transactions`;
  return new SigningBudgetError(
    `this request was already signed for ${times}; sign it again, with another expiry`,
  );
}
