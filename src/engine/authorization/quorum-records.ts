import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { canonicalJson } from '../crypto/encoding.ts';
import { parseP256PublicKey } from '../crypto/p256.ts';
import type { Quorum } from './quorum.ts';
import {
  type Evidence,
  isSignedBy,
  readEvidence,
  requireOccasion,
  type SignedRequestContent,
  UnauthorizedUseError,
} from './signed-evidence.ts';
import type { PinnedUsers, ReadVoucher, StoredVoucherKey, Voucher, VoucherContent } from './user-vouchers.ts';

/** The members of a key quorum. Nested key quorums appear as their references. */
interface QuorumMembers {
  /** The number of members that must sign. Null means all members. */
  readonly threshold: number | null;
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKeys: readonly string[];
  readonly userIds: readonly string[];
  readonly quorums: readonly string[];
  /**
   * If set, users count by the keys that the key store vouches for. If not, they count by the keys that the caller
   * lists in `userKeys`.
   */
  readonly users?: PinnedUsers | undefined;
}

/** A key quorum as it was created. Its digest is its reference and identifies it. */
export interface QuorumBase extends QuorumMembers {
  readonly appId: string;
  readonly id: string;
}

/** A change of a key quorum, with the data needed to determine its members before the change. */
export interface QuorumChange {
  readonly evidence: Evidence;
  /** The keys of members who are users, at the time of the change. */
  readonly userKeys: UserKeys;
  readonly vouchers?: readonly Voucher[] | undefined;
  /** For users after the change: their user ids in the app's login. Users who were members before keep their ids. */
  readonly subjects?: PinnedUsers['subjects'] | undefined;
  /** The nested key quorums before and after the change, as they were at that time. */
  readonly quorums: readonly QuorumRecord[];
}

/** Maps user ids to public keys. */
export type UserKeys = Readonly<Record<string, readonly string[]>>;

/** A key quorum with the signed requests that led to its current state. */
export interface QuorumRecord {
  readonly base: QuorumBase;
  readonly changes: readonly QuorumChange[];
  /** The key store's seal over the digest of the changes. A key quorum with changes but without a seal is ignored. */
  readonly seal?: SentSeal | undefined;
}

/** A sealed secret as part of a JSON document. Bytes are base64. */
export interface SentSeal {
  readonly sealedSecret: string;
  readonly wrappedDataKey: string;
  readonly masterKeyId: string;
}

/** Returns the reference of a key quorum: SHA-256 of its canonical JSON, hex. */
export function quorumReference(base: QuorumBase): string {
  const { appId, id, threshold, publicKeys, userIds, quorums, users } = base;
  const pinned = users === undefined ? {} : { users };
  return hash('sha256', canonicalJson({ appId, id, threshold, publicKeys, userIds, quorums, ...pinned }));
}

/** Returns the base of the key quorum that is created for an owner given as a public key. */
export function baseOfKey(appId: string, id: string, publicKey: string): QuorumBase {
  return { appId, id, threshold: 1, publicKeys: [publicKey], userIds: [], quorums: [] };
}

/** Returns the base of the key quorum that is created for an owner who is a user. */
export function baseOfUser(appId: string, id: string, userId: string, users: PinnedUsers): QuorumBase {
  return { appId, id, threshold: 1, publicKeys: [], userIds: [userId], quorums: [], users };
}

/**
 * Returns the reference of the key quorum for an owner that a signed body gives as a public key or a user.
 *
 * NOTE: several key quorums may have this single member. The server chooses among them by the records that it
 * presents.
 */
function referenceOfOwner(
  records: readonly QuorumRecord[],
  owner: { readonly publicKey: string } | { readonly userId: string },
): string {
  const [publicKeys, userIds] = 'publicKey' in owner ? [[owner.publicKey], []] : [[], [owner.userId]];
  const wanted = canonicalJson({ threshold: 1, publicKeys, userIds, quorums: [] });
  const record = records.find(({ base, changes }) => {
    const { appId: _, id: __, users: ___, ...members } = base;
    return changes.length === 0 && canonicalJson(members) === wanted;
  });
  if (record === undefined)
    throw new UnauthorizedUseError('expected a record of the key quorum of the owner');
  return quorumReference(record.base);
}

/** Key quorums by their references. */
type QuorumsByReference = ReadonlyMap<string, QuorumRecord>;

function byReference(records: readonly QuorumRecord[]): QuorumsByReference {
  return new Map(records.map((record) => [quorumReference(record.base), record]));
}

/**
 * Returns the reference of the key quorum whose id is in a signed body.
 *
 * NOTE: the id is signed, but the server chooses the content of the key quorum.
 */
export function referenceOfId(records: readonly QuorumRecord[], id: string): string {
  const record = records.find(({ base }) => base.id === id);
  if (record === undefined) {
    throw new UnauthorizedUseError(`expected a record of the key quorum \`${id}\``);
  }
  return quorumReference(record.base);
}

/** Key quorums nest one level deep. Members below that are ignored. */
const MAX_DEPTH = 2;

interface Surroundings {
  readonly records: QuorumsByReference;
  readonly userKeys: UserKeys;
  readonly vouchers: readonly Voucher[];
  /**
   * Verifies the vouchers of users. Undefined if the caller has not presented the voucher key: users with pins are then
   * ignored.
   */
  readonly readVoucher: ReadVoucher | undefined;
  /**
   * The time at which expired user keys are excluded, Unix ms. Undefined for a change that the key store has already
   * verified.
   */
  readonly nowMs: number | undefined;
  /** The number of key quorums that contain this one. */
  readonly depth: number;
}

/** The context needed to follow the changes of a key quorum. */
type Followed = Pick<Surroundings, 'readVoucher' | 'depth'>;

/** Returns a key quorum after all its changes, in the form in which signatures are counted. */
async function currentQuorum(reference: string, around: Surroundings): Promise<Quorum> {
  const record = around.depth < MAX_DEPTH ? around.records.get(reference) : undefined;
  // INVARIANT: a key quorum without a record has no members. It is never satisfied, but still counts as a member of
  // the key quorum that contains it.
  return withMembers(reference, record && (await currentMembers(record, around)), around);
}

async function withMembers(
  reference: string,
  members: QuorumMembers | undefined,
  around: Surroundings,
): Promise<Quorum> {
  const { threshold = null, publicKeys = [], userIds = [], quorums = [], users } = members ?? {};
  return {
    id: reference,
    // "All members" means as many as there are distinct ids. Duplicates are removed below.
    threshold: threshold ?? [publicKeys, userIds, quorums].reduce((sum, each) => sum + new Set(each).size, 0),
    publicKeys,
    users: userIds.map((userId) =>
      users === undefined
        ? { userId, liveKeys: around.userKeys[userId] ?? [] }
        : // Uses the id in the login, so that two of our users with the same account there are one member.
          { userId: subjectOf(users, userId) ?? userId, liveKeys: vouchedKeys(users, userId, around) },
    ),
    quorums: await Promise.all(
      quorums.map((inner) => currentQuorum(inner, { ...around, depth: around.depth + 1 })),
    ),
  };
}

function subjectOf({ subjects }: PinnedUsers, userId: string): string | undefined {
  return Object.hasOwn(subjects, userId) ? subjects[userId] : undefined;
}

/** Returns the keys of a pinned user that the key store vouches for. */
function vouchedKeys(
  users: PinnedUsers,
  userId: string,
  { vouchers, readVoucher, nowMs }: Surroundings,
): string[] {
  const subject = subjectOf(users, userId);
  if (subject === undefined || readVoucher === undefined) return [];
  return vouchers.flatMap((voucher) => {
    const read = readVoucher(voucher, users.voucher);
    if (read?.subject !== subject || (nowMs !== undefined && read.expiresAtMs <= nowMs)) return [];
    return [read.publicKey];
  });
}

/** Caches the members that result from the changes of a record, by the depth of the record and the last digest. */
const followed = new LRUCache<string, QuorumMembers>({ max: 1_000 });

/**
 * Returns one digest (hex) per change. It covers the base of the key quorum and all changes up to this one, so it
 * identifies the changes, their order, and the evidence for them.
 */
export function changeDigests({ base, changes }: Pick<QuorumRecord, 'base' | 'changes'>): string[] {
  const digests: string[] = [];
  for (const change of changes) {
    digests.push(hash('sha256', JSON.stringify([digests.at(-1) ?? quorumReference(base), change])));
  }
  return digests;
}

/** Follows the changes of a key quorum, and verifies each change that was not verified before. */
async function currentMembers(record: QuorumRecord, around: Followed): Promise<QuorumMembers> {
  if (record.changes.length === 0) return record.base;
  const digests = changeDigests(record).map((digest) => `${around.depth} ${digest}`);
  const last = digests.findLastIndex((digest) => followed.has(digest));
  let members = followed.get(digests[last] ?? '') ?? record.base;
  for (const change of record.changes.slice(last + 1)) {
    members = await membersAfter(members, { record, change, around });
  }
  followed.set(digests.at(-1)!, members);
  return members;
}

interface ChangeOfRecord {
  readonly record: QuorumRecord;
  readonly change: QuorumChange;
  readonly around: Followed;
}

/** Returns the members after a change, and requires that the members before it have signed the change. */
async function membersAfter(
  members: QuorumMembers,
  { record, change, around }: ChangeOfRecord,
): Promise<QuorumMembers> {
  const { id, appId: ownAppId } = record.base;
  const { method, path, body, appId } = readEvidence(change.evidence);
  if (method !== 'PATCH' || path !== `/v1/key_quorums/${id}` || appId !== ownAppId) {
    throw new UnauthorizedUseError(`expected a change of the key quorum \`${id}\``);
  }
  const { userKeys, quorums, vouchers = [] } = change;
  const then = { ...around, records: byReference(quorums), userKeys, vouchers, nowMs: undefined };
  const before = await withMembers(id, members, then);
  if (!(await isSignedBy(before, change.evidence))) {
    throw new UnauthorizedUseError(`a change of the key quorum \`${id}\` lacks signatures`);
  }
  const { authorization_threshold: threshold, public_keys, user_ids, key_quorum_ids } = body;
  const userIds = texts(user_ids)?.map(neutralUserId) ?? members.userIds;
  return {
    threshold: typeof threshold === 'number' ? threshold : members.threshold,
    publicKeys: texts(public_keys)?.map(parseP256PublicKey) ?? members.publicKeys,
    userIds,
    quorums: texts(key_quorum_ids)?.map((inner) => referenceOfId(quorums, inner)) ?? members.quorums,
    ...(members.users === undefined ? {} : { users: pinnedAfter(members, userIds, change) }),
  };
}

/**
 * Returns the pins after a change. Members who stay keep their pins.
 *
 * NOTE: the server chooses the login account of a new member.
 */
function pinnedAfter(
  { userIds: before, users }: QuorumMembers,
  userIds: readonly string[],
  { subjects: added = {} }: QuorumChange,
): PinnedUsers {
  const { voucher, subjects } = users!;
  const kept = userIds.flatMap((id): [string, string][] => {
    const from = before.includes(id) ? subjects : added;
    return Object.hasOwn(from, id) ? [[id, from[id]!]] : [];
  });
  return { voucher, subjects: Object.fromEntries(kept) };
}

/**
 * Replaces the brand in a user id with the neutral word `service`, because a client signs ids that contain its own
 * brand.
 */
function neutralUserId(id: string): string {
  return id.replace(/^did:[a-z0-9]+:/, 'did:service:');
}

function texts(value: unknown): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new UnauthorizedUseError('expected a list of texts');
}

/** The key quorums of a request, as the caller presents them. */
export interface KnownQuorums {
  /** The required key quorums, and the key quorums nested in them. */
  readonly quorums: readonly QuorumRecord[];
  /** Keys of members who are users without pins, according to the caller. They cannot be verified. */
  readonly userKeys: UserKeys;
  /** The vouchers for the keys of members who are pinned users. */
  readonly vouching?: { readonly key: StoredVoucherKey; readonly vouchers: readonly Voucher[] } | undefined;
}

/**
 * `KnownQuorums` inside a key store that has opened the voucher key. Callers cannot send `readVoucher`, because it is a
 * function.
 */
export interface ReadQuorums extends KnownQuorums {
  readonly readVoucher?: ReadVoucher | undefined;
}

/**
 * Requires that one of the parties' key quorums has signed. Returns the index of the first party that has.
 *
 * @throws UnauthorizedUseError
 */
export async function requireQuorumSignature(
  { quorums, userKeys, vouching, readVoucher }: ReadQuorums,
  evidence: Evidence,
  { parties, nowMs }: { readonly parties: readonly string[]; readonly nowMs: number },
): Promise<number> {
  const vouchers = vouching?.vouchers ?? [];
  const records = byReference(quorums);
  // Try the parties one by one, the owner first, because the owner has usually signed.
  for (const [index, reference] of parties.entries()) {
    if (!records.has(reference)) continue;
    const around = { records, userKeys, vouchers, readVoucher, nowMs, depth: 0 };
    if (await isSignedBy(await currentQuorum(reference, around), evidence)) return index;
  }
  throw new UnauthorizedUseError('the request lacks signatures that allow this');
}

/**
 * Returns the owner after a signed change. The change sets the owner by `owner` or `owner_id`, or leaves it as it is.
 */
export function ownerAfter(
  { owner, owner_id: ownerId }: SignedRequestContent['body'],
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

/**
 * Returns the digest of the changes of a key quorum, including the change that a request makes now.
 *
 * NOTE: the caller chooses the content behind ids, and the keys and login accounts of users who are not pinned yet.
 * The digest prevents replacing them later.
 *
 * @throws UnauthorizedUseError unless its members have signed the request and it has not expired.
 */
export async function changedQuorum(
  record: QuorumRecord,
  occasion: { readonly quorumId: string; readonly appId: string; readonly nowMs: number },
  readVoucher: ReadVoucher | undefined,
): Promise<string> {
  const { base, changes } = record;
  const last = changes.at(-1);
  if (last === undefined || base.id !== occasion.quorumId || base.appId !== occasion.appId) {
    throw new UnauthorizedUseError(`expected a change of the key quorum \`${occasion.quorumId}\``);
  }
  requireOccasion(readEvidence(last.evidence), occasion);
  const isOver = ({ content }: Voucher) =>
    !((JSON.parse(content) as VoucherContent).expiresAtMs > occasion.nowMs);
  if (last.vouchers?.some(isOver) === true) throw new UnauthorizedUseError('a key of a user has expired');
  await currentMembers(record, { readVoucher, depth: 0 });
  return changeDigests(record).at(-1)!;
}
