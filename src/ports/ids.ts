/** Generates identifiers from `Entropy`. */
export interface Ids {
  /**
   * 24 characters, `[a-z][0-9a-z]{23}`: wallets, policies, rules, key quorums, condition sets, transactions, intents.
   */
  cuid2(): string;
  /** 25 characters starting with `c`: apps, organizations, accounts. */
  cuid(): string;
  /** `did:service:` followed by a cuid: users. */
  userDid(): string;
  /** UUID version 4: wallet actions, sessions, requests. */
  uuid(): string;
}
