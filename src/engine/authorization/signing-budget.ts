import { hash } from 'node:crypto';
import { canonicalJson } from '../crypto/encoding.ts';
import type { SpendingTask } from './requested/built-part.ts';

// Limits the number of transactions that a key store signs for one request. A request leaves fields open, such as the
// nonce or the blockhash. Without a limit, one signed request would authorize any number of transactions.

/** One signature for a signed request. */
export interface Spending extends SpendingTask {
  readonly walletId: string;
  /** The reference of the key quorum that signed the request. */
  readonly party: string;
  /** The fields that distinguish the request from other requests. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Unix ms; undefined if the request has no expiry. */
  readonly expiryMs: number | undefined;
}

/**
 * Thrown when the request has expired, has reached its limit of transactions or of fees, or cannot be stored because
 * the budget is full.
 */
export class SigningBudgetError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SigningBudgetError';
  }
}

export interface SigningBudgetOptions {
  /** The maximum number of transactions for one request that can all take effect. */
  readonly most: number;
  /** The maximum number of slots that are kept, for all requests together. Default: 100,000. */
  readonly room?: number;
  /** The records of `spend` before a restart, in order. */
  readonly recorded?: Iterable<RecordedRequest>;
}

/**
 * A stored request. The latest record with a digest replaces earlier ones. It contains only digests and amounts.
 * `slots` has an entry per slot: its name, whether it counts for this request, and the highest fee that was signed
 * for it (wei, or null). A record without slots removes the request.
 */
export interface RecordedRequest {
  readonly digest: string;
  /** Unix ms; null if the request has no expiry. */
  readonly untilMs: number | null;
  readonly atOnce: number;
  readonly slots: readonly (readonly [name: string, isHeld: boolean, fee: string | null])[];
}

/** Stores how many transactions were signed for each request. */
export interface SigningJournal {
  /** The records from earlier runs. */
  readonly recorded: Iterable<RecordedRequest>;
  /** Resolves once the changes are stored. */
  record(changes: readonly RecordedRequest[], all: () => readonly RecordedRequest[]): Promise<void>;
}

/**
 * CHOICE: enough for 80 requests per second with an expiry of 20 minutes, the longest that production servers accept.
 * This many slots take about 85 MB.
 */
const ROOM = 100_000;

/** CHOICE: a request that has lost its nonce to other requests more times than this is no longer signed. */
const MAX_LOST = 20;

/** CHOICE: when full, requests that expire more than a day from now are evicted first. */
const LONG_MS = 24 * 3_600_000;

/**
 * How long an expired request is kept: as long as it may still be signed, and one minute more for clock differences.
 */
const KEPT_MS = 2 * 60_000;

/** The sweep interval, normally and when full. */
const [SWEEP_MS, FULL_SWEEP_MS] = [10_000, 1_000];

/**
 * CHOICE: the maximum number of requests that are examined to find one that can take over a nonce. As many requests
 * compete for a nonce as there are servers, and a host has fewer servers than this.
 */
const MAX_SEARCHED = 100;

const NO_ROOM = 'the signer remembers as many requests as it has room for; try again later';

/** A signed request and the slots that it occupies. */
interface Entry {
  readonly digest: string;
  readonly untilMs: number;
  readonly atOnce: number;
  /** The maximum number of slots that may count for the request. */
  readonly most: number;
  /** The slots that count for the request. */
  readonly held: Set<Slot>;
  /** The highest signed fee for each slot of the request, including slots that now count for other requests. */
  readonly fees: Map<Slot, bigint | undefined>;
}

/** A nonce, or a whole transaction on chains without nonces. It can take effect only once. */
interface Slot {
  readonly name: string;
  /** The request for which the slot counts, if that request is still stored. */
  holder: Entry | undefined;
  readonly signedFor: Set<Entry>;
}

export function createSigningBudget({ most, room = ROOM, recorded = [] }: SigningBudgetOptions) {
  const entries = new Map<string, Entry>();
  const slots = new Map<string, Slot>();
  /** The number of slots of all requests. It includes slots that now count for other requests. */
  let remembered = 0;
  /** Requests that had more than a day left when they were last examined, oldest first. Starts at `next`. */
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
    // If the clock was set back, the interval starts again.
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
   * Returns the request to evict when full, or undefined if none may be evicted. The cost does not grow with the
   * number of requests.
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
      if (isHeld) assignSlot(entry, slot);
    }
    remembered += kept.length;
  }

  /**
   * Counts a signature for its request, unless the request was signed for the same slot before. A slot is a nonce, or
   * the whole transaction on chains without nonces.
   * - The chain accepts only one transaction per slot, so of all requests that were signed for a slot, it counts for
   *   only one.
   * - A request that loses a nonce to another request of the same party can therefore be signed for the next nonce.
   * - A nonce that is signed for several roles counts once per role, so an approval never allows a second payment.
   *
   * INVARIANT: the requests together cannot take effect more times than they may in total. Each slot counts for one
   * request that was signed for it, and no request has more slots than its maximum.
   *
   * INVARIANT: a request that was removed because it expired cannot start again from zero, however late the call
   * comes.
   *
   * @returns the changed records, for the journal.
   * @throws SigningBudgetError, and then nothing is counted.
   */
  function spend(spending: Spending, nowMs: number): RecordedRequest[] {
    const { walletId, party, role = 'pays', fee } = spending;
    if (untilOf(spending.expiryMs) < nowMs)
      throw new SigningBudgetError('this request has expired; sign it again');
    sweep(nowMs);
    const entry = entryOf(spending);
    const { held, fees } = entry;
    // A digest keeps the name short, whatever the length of the signed data.
    const name = hash('sha256', `${walletId} ${party} ${role} ${spending.slot}`, 'base64');
    const slot = slots.get(name) ?? { name, holder: undefined, signedFor: new Set<Entry>() };
    if (!fees.has(slot) && fees.size >= entry.most + MAX_LOST * spending.atOnce) throw repeated(fees.size);
    requireFee(fees, slot, spending);
    const needsRoom = !fees.has(slot) && remembered >= room;
    const leaving = needsRoom ? oldestLasting(nowMs, entry) : undefined;
    const lacksRoom = needsRoom && leaving === undefined;
    const changed = new Set([entry]);
    if (
      slot.holder !== entry &&
      held.size >= entry.most &&
      (lacksRoom || !transfersSlot(entry, slot, changed))
    ) {
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
    assignSlot(entry, slot);
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
    /** The number of stored requests and of slots. */
    size: () => ({ requests: entries.size, slots: slots.size }),
  };
}

function recordOf({ digest, untilMs, atOnce, held, fees }: Entry): RecordedRequest {
  const slots = [...fees].map(
    ([slot, fee]) => [slot.name, held.has(slot), fee === undefined ? null : String(fee)] as const,
  );
  return { digest, untilMs: Number.isFinite(untilMs) ? untilMs : null, atOnce, slots };
}

function assignSlot(entry: Entry, slot: Slot): void {
  slot.holder?.held.delete(slot);
  slot.holder = entry;
  entry.held.add(slot);
}

/**
 * Makes room for one more slot in a request that already has its maximum: transfers one of its slots to another request
 * that was also signed for that slot and is below its maximum, or that passes on a slot of its own in turn. Returns
 * whether that was possible.
 *
 * NOTE: when several servers sign for the same nonce, the first to commit wins, and the signer cannot see which. The
 * others request a signature for the next nonce, even the one that signed last. A caller who has the other request
 * could also have it signed again, with the same effect, so this allows nothing more.
 *
 * @param wanted the slot that will count for the request and no longer for its current one.
 * @param changed receives each request that gets a slot. A request that only loses a slot need not be recorded, because
 * the record of the other one takes the slot.
 */
function transfersSlot(
  entry: Entry,
  wanted: Slot,
  changed: Set<Entry>,
  searched: Set<Entry> = new Set([entry]),
): boolean {
  for (const slot of entry.held) {
    for (const other of slot.signedFor) {
      if (searched.has(other)) continue;
      if (searched.size >= MAX_SEARCHED) return false;
      searched.add(other);
      const count = other.held.size - (wanted.holder === other ? 1 : 0);
      if (count >= other.most && !transfersSlot(other, wanted, changed, searched)) continue;
      assignSlot(other, slot);
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
 * Requires that all signatures for a request together pay at most what one transaction may pay. A request is for one
 * chain, so all of them have the same ceiling.
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
