/**
 * The source of the time that the server acts on. Sandbox clocks can be frozen and set. Durations are measured with
 * `performance`, and log lines have the time of the system.
 */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
}

/** The source of randomness for everything that a seed must repeat. Only the sandbox can seed it. */
export interface Entropy {
  bytes(length: number): Uint8Array;
}

/** Generates identifiers from `Entropy`. */
export interface Ids {
  /** 24 characters, `[a-z][0-9a-z]{23}`, for most resources, such as wallets, policies, transactions and intents. */
  cuid2(): string;
  /** 25 characters starting with `c`, for example for apps, organizations and accounts. */
  cuid(): string;
  /** `did:service:` followed by a cuid, for users. */
  userDid(): string;
  /** A UUID version 4, for example for wallet actions, sessions and requests. */
  uuid(): string;
}

/** Structured log. Fields must not contain secrets, keys, signatures or request bodies. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
