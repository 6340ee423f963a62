import { parseP256PublicKey } from '../crypto/p256.ts';
import {
  byReference,
  currentQuorum,
  neutralUserId,
  type QuorumRecord,
  referenceOfId,
  referenceOfOwner,
  type UserKeys,
} from './quorum-records.ts';
import { type Evidence, type EvidentRequest, isSignedBy, UnauthorizedUseError } from './signed-evidence.ts';
import type { ReadVoucher, StoredVoucherKey, Voucher } from './user-vouchers.ts';

/** What is known of key quorums. */
export interface KnownQuorums {
  /** The key quorums that are needed, and those nested in them. */
  readonly quorums: readonly QuorumRecord[];
  /** Keys of members who are users and not pinned, as the caller knows them: they cannot be verified. */
  readonly userKeys: UserKeys;
  /** What shows the keys of members who are users and pinned. */
  readonly vouching?: { readonly key: StoredVoucherKey; readonly vouchers: readonly Voucher[] } | undefined;
}

/** `KnownQuorums` in a vault, which has opened the voucher key. A caller cannot send a function. */
export interface ReadQuorums extends KnownQuorums {
  readonly readVoucher?: ReadVoucher | undefined;
}

/**
 * Requires that one of these key quorums has signed. Result: the place of the first one that has.
 *
 * @throws UnauthorizedUseError
 */
export function requireParty(
  { quorums, userKeys, vouching, readVoucher }: ReadQuorums,
  evidence: Evidence,
  { parties, nowMs }: { readonly parties: readonly string[]; readonly nowMs: number },
): number {
  const vouchers = vouching?.vouchers ?? [];
  const records = byReference(quorums);
  // One by one: the owner is the first, and mostly the one who has signed.
  for (const [place, reference] of parties.entries()) {
    if (!records.has(reference)) continue;
    const quorum = currentQuorum(reference, { records, userKeys, vouchers, readVoucher, nowMs, depth: 0 });
    if (isSignedBy(quorum, evidence)) return place;
  }
  throw new UnauthorizedUseError('the signed request lacks signatures of those who may do this');
}

/** The owner after a signed change, which names one by `owner` or `owner_id`, or leaves it as it is. */
export function ownerAfter(
  { owner, owner_id: ownerId }: EvidentRequest['body'],
  before: string | null,
  quorums: readonly QuorumRecord[],
): string | null {
  if (owner === null || (owner === undefined && ownerId === null)) return null;
  if (typeof ownerId === 'string') return referenceOfId(quorums, ownerId);
  if (owner === undefined) return before;
  const { public_key: key, user_id: userId } = owner as { public_key?: unknown; user_id?: unknown };
  if (typeof key === 'string') return referenceOfOwner(quorums, { publicKey: parseP256PublicKey(key) });
  if (typeof userId === 'string') return referenceOfOwner(quorums, { userId: neutralUserId(userId) });
  throw new UnauthorizedUseError('expected an owner');
}

/** CHOICE: how long after its expiry a request may still be waiting for its signature. */
const GRACE_MS = 60_000;

/**
 * The time by which a policy is evaluated: the one by which the caller has evaluated it, so that both decide the same at
 * the end of a time that a policy allows. It is not later than now, and not longer ago than a request may wait.
 */
export function judgedAt(saidMs: number | undefined, nowMs: number): number {
  return typeof saidMs === 'number' ? Math.min(nowMs, Math.max(saidMs, nowMs - GRACE_MS)) : nowMs;
}

/**
 * Requires that the request is of this app and has not expired.
 *
 * @throws UnauthorizedUseError
 */
export function requireOccasion(
  { appId, expiryMs }: EvidentRequest,
  occasion: { readonly appId: string; readonly nowMs: number },
): void {
  if (appId !== occasion.appId) throw new UnauthorizedUseError('the signed request is of another app');
  // NaN, for a header that is no number, is not after any time.
  if (expiryMs !== undefined && !(expiryMs + GRACE_MS >= occasion.nowMs)) {
    throw new UnauthorizedUseError('the signed request has expired');
  }
}
