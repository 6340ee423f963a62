/** A snapshot of a key quorum: its threshold and all members. */
export interface Quorum {
  readonly id: string;
  /** The number of members that must sign; null means all members. */
  readonly threshold: number | null;
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKeys: readonly string[];
  readonly users: readonly QuorumUser[];
  readonly quorums: readonly Quorum[];
}

/** A user in a quorum. Expired keys are left out. */
interface QuorumUser {
  readonly userId: string;
  readonly liveKeys: readonly string[];
}

/** A user in a quorum, with the expired keys, so that an error can mention them. */
interface LoadedQuorumUser extends QuorumUser {
  readonly expiredKeys: readonly string[];
  /** JSON of the vouchers for the live keys. */
  readonly vouchers: readonly string[];
}

export interface LoadedQuorum extends Quorum {
  readonly displayName: string | null;
  /**
   * Whether only keys that the key store vouches for count for the quorum's users. `liveKeys` then contains no other
   * keys.
   */
  readonly isPinned: boolean;
  readonly users: readonly LoadedQuorumUser[];
  readonly quorums: readonly LoadedQuorum[];
}

export interface QuorumCount {
  /** The number of distinct members that signed. */
  readonly count: number;
  /** The number of members that must sign, at least 1. */
  readonly threshold: number;
  /** The number of members that still have to sign; 0 when satisfied. */
  readonly missing: number;
  readonly satisfied: boolean;
}

/**
 * Counts the members of `quorum` that signed, given the public keys under which a signature verified.
 * - Each member counts once, however many times it signed.
 * - A user counts through any live key.
 * - A nested quorum counts as one member when its own threshold is met.
 * - A key that is a member of several quorums counts in each.
 *
 * INVARIANT: a quorum without members is never satisfied, and adding a key never makes a satisfied quorum unsatisfied.
 */
export function countQuorum(quorum: Quorum, verifiedKeys: ReadonlySet<string>): QuorumCount {
  const keys = new Set(quorum.publicKeys.filter((key) => verifiedKeys.has(key))).size;
  const users = new Set(
    quorum.users
      .filter((user) => user.liveKeys.some((key) => verifiedKeys.has(key)))
      .map((user) => user.userId),
  ).size;
  const nested = new Set(
    quorum.quorums.filter((child) => countQuorum(child, verifiedKeys).satisfied).map((child) => child.id),
  ).size;
  const count = keys + users + nested;
  const threshold = thresholdOf(quorum);
  const missing = Math.max(0, threshold - count);
  return { count, threshold, missing, satisfied: missing === 0 };
}

/** The members who have signed an intent so far. */
export interface Signers {
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKeys: readonly string[];
  /** Maps each user id to the key with which the user signed. */
  readonly userKeys: ReadonlyMap<string, string>;
}

/**
 * Counts the members of `quorum` that have signed an intent: authorization keys by public key, users by the rule of
 * `countsInAgreement`.
 */
export function countAgreement(quorum: LoadedQuorum, { publicKeys, userKeys }: Signers): QuorumCount {
  const users = [...userKeys.keys()].map(signatureOf);
  return countQuorum(withAgreement(quorum, userKeys), new Set([...publicKeys, ...users]));
}

/**
 * Returns whether a user's earlier signature of an intent counts in a key quorum.
 *
 * CHOICE: a signature counts even if its key has expired since, because members sign at different times. If the key
 * store vouches for users' keys, it does not count, because the key store ignores expired keys. The user then signs
 * again with another key.
 */
export function countsInAgreement(
  { isPinned, users }: LoadedQuorum,
  signed: { readonly userId: string; readonly publicKey: string },
): boolean {
  return users.some(
    ({ userId, liveKeys }) => userId === signed.userId && (!isPinned || liveKeys.includes(signed.publicKey)),
  );
}

function withAgreement(quorum: LoadedQuorum, userKeys: Signers['userKeys']): Quorum {
  return {
    ...quorum,
    users: quorum.users.map(({ userId }) => {
      const publicKey = userKeys.get(userId);
      const counts = publicKey !== undefined && countsInAgreement(quorum, { userId, publicKey });
      return { userId, liveKeys: counts ? [signatureOf(userId)] : [] };
    }),
    quorums: quorum.quorums.map((child) => withAgreement(child, userKeys)),
  };
}

/** Stands for a user's signature among public keys. It cannot collide with one, because base64 has no colon. */
function signatureOf(userId: string): string {
  return `user:${userId}`;
}

/** Counts distinct members. A nested quorum is one member. */
function countMembers(quorum: Pick<Quorum, 'publicKeys' | 'users' | 'quorums'>): number {
  return (
    new Set(quorum.publicKeys).size +
    new Set(quorum.users.map((user) => user.userId)).size +
    new Set(quorum.quorums.map((child) => child.id)).size
  );
}

/**
 * Returns the smallest number of signatures that could satisfy the quorum, so a request with fewer need not be
 * verified. Returns 1 if a key occurs twice, because one signature then counts for several members.
 */
export function fewestSignatures(quorum: Quorum): number {
  const keys = quorumKeys(quorum);
  if (new Set(keys).size < keys.length) return 1;
  const costs = [
    ...quorum.publicKeys.map(() => 1),
    ...quorum.users.map(() => 1),
    ...quorum.quorums.map(fewestSignatures),
  ].sort((a, b) => a - b);
  return costs.slice(0, thresholdOf(quorum)).reduce((sum, cost) => sum + cost, 0);
}

/** Returns every public key whose signature can count, in member order, nested quorums last. */
export function quorumKeys(quorum: Quorum): string[] {
  return [
    ...quorum.publicKeys,
    ...quorum.users.flatMap((user) => user.liveKeys),
    ...quorum.quorums.flatMap(quorumKeys),
  ];
}

function thresholdOf(quorum: Quorum): number {
  return Math.max(1, quorum.threshold ?? countMembers(quorum));
}

/** Returns the expired keys of users in the quorum and in its nested quorums. */
export function expiredKeys(quorum: LoadedQuorum): string[] {
  return [...quorum.users.flatMap((user) => user.expiredKeys), ...quorum.quorums.flatMap(expiredKeys)];
}
