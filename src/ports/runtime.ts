/** The only source of time; other code does not read the system clock. Sandbox clocks can be frozen and set. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
}

/** The only source of randomness. Seedable only in the sandbox. */
export interface Entropy {
  bytes(length: number): Uint8Array;
}

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

/** Structured log. Fields must not contain secrets, keys, signatures or request bodies. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
