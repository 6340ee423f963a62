import type { SqlEntityManager } from '@mikro-orm/sql';
import type { OperationId, Operations } from './generated/operations.ts';

/** The one source of time. Sandbox clocks can be frozen and moved; nothing else reads the machine's clock. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
}

/** The one source of randomness. Seedable only in the sandbox. */
export interface Entropy {
  bytes(length: number): Uint8Array;
}

/** Makers of identifiers, drawn from `Entropy`. */
export interface Ids {
  /** 24 characters, `[a-z][0-9a-z]{23}`: wallets, policies, rules, key quorums, condition sets, transactions, intents. */
  cuid2(): string;
  /** 25 characters beginning with `c`: apps, organizations, accounts. */
  cuid(): string;
  /** `did:service:` and a cuid: users. */
  userDid(): string;
  /** UUID version 4: wallet actions, sessions, requests. */
  uuid(): string;
}

/** What a sealed secret is bound to; opening it under any other binding fails. */
export interface SealBinding {
  walletId: string;
  appId: string;
  chainType: string;
}

/** A wallet's secret under envelope encryption, as stored. */
export interface SealedKey {
  /** 12-byte nonce || ciphertext || 16-byte tag of the secret under the wallet's data key. */
  sealedSecret: Uint8Array;
  /** 12-byte nonce || ciphertext || 16-byte tag of the data key under the master key. */
  wrappedDataKey: Uint8Array;
  /** Names the master key that wrapped the data key. */
  masterKeyId: string;
}

/** Holds wallets' secrets. A secret leaves it only into the `use` callback and is wiped afterwards. */
export interface KeyVault {
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  withSecret<T>(
    sealed: SealedKey,
    binding: SealBinding,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T>;
}

/** Structured log; the fields never hold secrets, keys, signatures or request bodies. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Where the public keys of customers' token issuers come from. Answers are kept for a while. */
export interface JwksSource {
  /**
   * The members of the `keys` array at `url`. With `isKidUnknown` the document is fetched anew, unless that was done
   * a moment ago. Rejects when the document cannot be fetched or holds no keys.
   */
  keys(url: string, isKidUnknown?: boolean): Promise<readonly Record<string, unknown>[]>;
}

/** The ports that differ between compositions. Everything else is the same code everywhere. */
export interface Services {
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly ids: Ids;
  readonly vault: KeyVault;
  readonly log: Log;
  readonly jwks: JwksSource;
  /** Refusals of authorization signatures carry `data` that explains them. */
  readonly diagnostics: boolean;
  /** The word that stands for `service` on the wire. Tokens are signed with it inside, so they need it in time. */
  readonly prefix: string;
}

/** The app whose credentials the request carried. */
export interface AuthenticatedApp {
  readonly id: string;
  readonly name: string;
}

/** What the request proves about who sent it. Made before the handler, judged by `requireOwner`. */
export interface RequestProof {
  /** Signatures of the header `service-authorization-signature`, base64 as sent, in order; empty items dropped. */
  readonly signatures: readonly string[];
  /** Every canonical payload (RFC 8785, UTF-8) that an honest client could have signed for this request. */
  canonicalPayloads(): readonly Uint8Array[];
  /** Unix ms of `service-request-expiry`, when sent. */
  readonly expiryMs: number | undefined;
  /** The user whose access token authenticated the request in place of the app secret. */
  readonly userId: string | undefined;
}

/** Everything an operation may touch: the ports, the app, one unit of work, one instant, one proof. */
export interface OperationContext extends Services {
  readonly app: AuthenticatedApp;
  /** Inside the request's transaction for every method but GET. Kysely through `em.getKysely()`. */
  readonly em: SqlEntityManager;
  /** `clock.now()` read once when the request arrived, Unix ms. */
  readonly nowMs: number;
  readonly requestId: string;
  readonly proof: RequestProof;
}

/** Path, query and body of one operation, validated against the contract; query values are coerced, bodies never. */
export interface OperationInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

/** Reads the input, calls one domain verb, returns the body of the operation's success response. */
export type Handler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: OperationContext,
) => Promise<Operations[Id]['response']>;
