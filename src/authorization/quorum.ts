/** A key quorum as it stands at one instant: its threshold and everyone who can count towards it. */
export interface Quorum {
  readonly id: string;
  /** How many members must agree; null = all of them. */
  readonly threshold: number | null;
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKeys: readonly string[];
  readonly users: readonly QuorumUser[];
  readonly quorums: readonly Quorum[];
}

/** A user in a quorum, with the public keys under which the user may sign now. */
export interface QuorumUser {
  readonly userId: string;
  readonly liveKeys: readonly string[];
}

/** A user in a quorum, with the keys that no longer count as well, so that a refusal can say so. */
export interface LoadedQuorumUser extends QuorumUser {
  readonly expiredKeys: readonly string[];
}

export interface LoadedQuorum extends Quorum {
  readonly displayName: string | null;
  readonly users: readonly LoadedQuorumUser[];
  readonly quorums: readonly LoadedQuorum[];
}

export interface QuorumCount {
  /** Distinct members that agree. */
  readonly count: number;
  /** Members that must agree, never below one. */
  readonly threshold: number;
  /** Members still missing; 0 when satisfied. */
  readonly missing: number;
  readonly satisfied: boolean;
}

/**
 * How many members of `quorum` agree, given the public keys under which a signature verified.
 * A member counts once however often it signed; a user counts by any live key; a nested quorum counts as one member
 * when its own threshold is met; a key that stands in both places counts in both.
 *
 * INVARIANT: a quorum without members is never satisfied, and a further key never turns satisfied into unsatisfied.
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

/**
 * How many members of `quorum` agree, given who signed at some time before: authorization keys by themselves, users
 * by their ids, whatever became of the key that a user signed with.
 */
export function countAgreement(
  quorum: Quorum,
  { publicKeys, userIds }: { readonly publicKeys: readonly string[]; readonly userIds: readonly string[] },
): QuorumCount {
  // No public key in base64 holds a colon.
  const keyOf = (userId: string) => `user:${userId}`;
  return countQuorum(withUserKeys(quorum, keyOf), new Set([...publicKeys, ...userIds.map(keyOf)]));
}

function withUserKeys(quorum: Quorum, keyOf: (userId: string) => string): Quorum {
  return {
    ...quorum,
    users: quorum.users.map(({ userId }) => ({ userId, liveKeys: [keyOf(userId)] })),
    quorums: quorum.quorums.map((child) => withUserKeys(child, keyOf)),
  };
}

/** Members of the quorum, each counted once; nested quorums count as one each. */
export function countMembers(quorum: Pick<Quorum, 'publicKeys' | 'users' | 'quorums'>): number {
  return (
    new Set(quorum.publicKeys).size +
    new Set(quorum.users.map((user) => user.userId)).size +
    new Set(quorum.quorums.map((child) => child.id)).size
  );
}

/**
 * The fewest signatures that could satisfy the quorum; fewer than this many need not be verified at all.
 * Where a key could count in two places at once the answer is 1, since then one signature may do for several members.
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

/** Every public key under which a signature could count, in member order, nested quorums last. */
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
