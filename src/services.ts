import type { SqlEntityManager } from '@mikro-orm/sql';
import type { OperationId, Operations } from './generated/operations.ts';
import type { Exchange } from './services-exchange.ts';
import type { SparkOperators } from './services-spark.ts';
import type { ChainTransfer, TransferQuery } from './services-transfers.ts';
import type { WebhookSender } from './services-webhooks.ts';

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

/** Where a broadcast transaction stands, as the chain tells it. */
export type ChainStatus =
  /** Known to the chain and not in a block yet. */
  | { readonly kind: 'pending' }
  /** In a block, its effects are there; `isFinal` when no reorganization can take it back. */
  | ({ readonly kind: 'included'; readonly isFinal: boolean } & Inclusion)
  /** In a block, but only its fee was taken. */
  | ({ readonly kind: 'reverted'; readonly isFinal: boolean; readonly reason: string } & Inclusion)
  /** Another transaction of the same account took its nonce. */
  | { readonly kind: 'replaced'; readonly byHash: string | undefined }
  /** The chain does not know it: never arrived, dropped, or its blockhash is too old to count. */
  | { readonly kind: 'unknown'; readonly isExpired: boolean };

/** Where and at what price a transaction came into a block. */
export interface Inclusion {
  readonly blockNumber: bigint;
  /** Unix seconds. */
  readonly blockTimestampSeconds: number;
  /** In the smallest unit of the native asset; on Tempo, of the token that the fee was paid in. */
  readonly feePaid: bigint;
  /** Of a user operation only: the transaction that carried it, and the place of the entry point's event. */
  readonly operation?: { transactionHash: string; gasUsed: bigint; logIndex: number };
}

/** What a chain said to signed bytes. A node that cannot be reached rejects instead. */
export type BroadcastOutcome =
  /** Taken now or known already: the same bytes may be sent again at any time. */
  | { readonly isAccepted: true; readonly hash: string }
  | { readonly isAccepted: false; readonly reason: BroadcastRefusal; readonly message: string };

export type BroadcastRefusal =
  | 'insufficient_funds'
  /** The nonce or blockhash has been used or is too old: these bytes can never be taken. */
  | 'stale'
  /** The fee is too low to be taken now, or to replace what is pending. */
  | 'underpriced'
  /** Running it fails; only chains that run before they take say this. */
  | 'reverts'
  | 'invalid';

/** What a dry run of a transaction found. */
export type Simulation =
  | { readonly succeeds: true /** Gas (EVM) or compute units (Solana). */; readonly units: bigint }
  | { readonly succeeds: false; readonly reason: BroadcastRefusal; readonly message: string };

/** One chain, as far as every kind of chain can be asked. Addresses are as the chain type writes them. */
export interface Chain {
  readonly caip2: string;
  /** Raw amounts in the order of `tokenAddresses`; null is the native asset; an unknown token holds 0. */
  balances(address: string, tokenAddresses: readonly (string | null)[]): Promise<readonly bigint[]>;
  broadcast(signedBytes: Uint8Array): Promise<BroadcastOutcome>;
  /** `signedBytes` tells its account and nonce or blockhash, which decide whether it can still come. */
  statusOf(hash: string, signedBytes: Uint8Array): Promise<ChainStatus>;
  /** Transfers from or to an address, newest first; undefined where the chain keeps no such list (plain JSON-RPC). */
  transfersOf?(query: TransferQuery): Promise<readonly ChainTransfer[]>;
  /** Every transfer on the chain that came after a position, oldest first; undefined where there is no such list. */
  transfersAfter?(position: string | undefined, limit: number): Promise<readonly ChainTransfer[]>;
}

/** A chain whose id is `eip155:…`. */
export interface EvmChain extends Chain {
  readonly kind: 'evm';
  readonly chainId: bigint;
  /** The next nonce of the account, those in the pool counted. */
  nonce(address: string): Promise<bigint>;
  /** Wei per gas. `maxPriorityFeePerGas` is undefined on a chain before EIP-1559. */
  fees(): Promise<{ readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint | undefined }>;
  /** Runs a call on the newest state without keeping its effects; `units` is an estimate of the gas limit. */
  simulate(call: EvmCall): Promise<Simulation>;
  /** Read-only call: the bytes that the contract returns; empty when there is no contract. */
  read(call: { readonly to: string; readonly data: Uint8Array }): Promise<Uint8Array>;
  /** The code at an address: empty for a plain account, `ef0100` and the contract for one that delegates (EIP-7702). */
  code(address: string): Promise<Uint8Array>;
  /** Undefined where nobody pays the gas of others. */
  readonly bundler?: Bundler;
}

/** Takes user operations (`encodeSponsoredOperation`) to its chain and pays their gas. The hash is the operation's. */
export interface Bundler extends Pick<Chain, 'broadcast' | 'statusOf'> {
  /** The contract that pays. */
  readonly paymaster: string;
}

export interface EvmCall {
  readonly from: string;
  /** Undefined makes a contract. */
  readonly to: string | undefined;
  readonly value: bigint;
  readonly data: Uint8Array;
  /** Delegations that come with the transaction (EIP-7702), signed. */
  readonly authorizationList?: readonly EvmAuthorization[];
  /** Runs it as though the sender delegated to this contract already: before anything is signed. */
  readonly delegatedTo?: string;
}

/** A signed authorization of EIP-7702. */
export interface EvmAuthorization {
  readonly contract: string;
  readonly chainId: number;
  readonly nonce: bigint;
  /** 0x hex of r || s || parity. */
  readonly signature: string;
}

/** A chain whose id is `solana:…`. */
export interface SolanaChain extends Chain {
  readonly kind: 'solana';
  latestBlockhash(): Promise<{ readonly blockhash: string; readonly lastValidBlockHeight: bigint }>;
  /** `transactionBytes` need not be signed. */
  simulate(transactionBytes: Uint8Array): Promise<Simulation>;
  /** The token accounts of an owner, by mint. */
  tokenAccounts(
    owner: string,
    mint: string,
  ): Promise<readonly { readonly address: string; readonly rawAmount: bigint }[]>;
  /** What a token's mint says of it; undefined where there is no such mint. */
  mint(address: string): Promise<{ readonly decimals: number; readonly tokenProgram: string } | undefined>;
  /** Lamports that an account of this size must hold to be kept. */
  rentExemption(sizeBytes: number): Promise<bigint>;
  /** Pays the fees of messages that it signs; undefined where nobody pays for others. */
  readonly feePayer?: { readonly address: string; sign(messageBytes: Uint8Array): Promise<Uint8Array> };
}

/** A chain whose id is `tron:…`. */
export interface TronChain extends Chain {
  readonly kind: 'tron';
  /** What a new transaction refers to: 2 and 8 bytes in hex. */
  referenceBlock(): Promise<{ readonly refBlockBytes: string; readonly refBlockHash: string }>;
  /** Runs the raw data of a transaction, unsigned, without keeping its effects; `units` is energy. */
  simulate(rawDataBytes: Uint8Array): Promise<Simulation>;
}

/** A chain of which only what all chains have is asked. */
export interface PlainChain extends Chain {
  readonly kind: 'plain';
  readonly spark?: SparkOperators;
}

export type AnyChain = EvmChain | SolanaChain | TronChain | PlainChain;

/** Every chain that this server can ask. */
export interface Chains {
  /** Undefined where no such chain is configured. */
  find(caip2: string): AnyChain | undefined;
  /** Ids of the chains that were used and keep a list of their transfers; undefined where no chain keeps one. */
  listing?(): Promise<readonly string[]>;
}

/** What assets are worth. */
export interface Prices {
  /** Decimal strings of US dollars for one unit, by lower-case symbol; what has no price is left out. */
  inUsd(symbols: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** Keeps the keys of custodial wallets, each under the id that the wallet has here. */
export interface Custodian {
  /**
   * Opens a wallet for one of its customers; the same wallet id opens the same wallet. Undefined when it has no such
   * customer.
   */
  openWallet(order: {
    readonly walletId: string;
    readonly userId: string;
    /** The chain's name. */
    readonly chain: string;
  }): Promise<{ readonly address: string } | undefined>;
}

/** Every custodian that this server works with. */
export interface Custodians {
  /** Undefined where no custodian of this name is configured. */
  find(provider: string): Custodian | undefined;
}

/** That a wallet was used, as it is recorded. */
export interface UseRecord {
  readonly appId: string;
  readonly walletId: string;
  /** The operation by its id. */
  readonly operation: string;
  /** The method as policies name it. */
  readonly method: string;
  readonly requestId: string;
  /** Unix ms. */
  readonly judgedAtMs: number;
  /** JSON array of the policies that judged. */
  readonly policyIds: string;
  /** The request's body as JSON; null when it is too large to be kept. */
  readonly request: string | null;
}

/** Takes the records of allowed uses of wallets and stores them soon. */
export interface UseLog {
  /** Takes the record of a use whose transaction is committed. Waits, and may reject, only while too many wait. */
  add(record: UseRecord): Promise<void> | undefined;
  /** Resolves when everything is stored that was taken before. */
  flush(): Promise<void>;
}

/** The ports that differ between compositions. Everything else is the same code everywhere. */
export interface Services {
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly ids: Ids;
  readonly vault: KeyVault;
  readonly log: Log;
  readonly jwks: JwksSource;
  readonly chains: Chains;
  readonly prices: Prices;
  readonly custodians: Custodians;
  readonly exchange?: Exchange;
  readonly uses: UseLog;
  readonly webhooks: WebhookSender;
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
  /** The absolute URL of another operation of this server, as the sender of this request knows it. */
  urlOf(path: string): string;
  /** Every canonical payload that an honest client could have signed for a request that is proposed, not sent. */
  payloadsOf(proposed: ProposedRequest): readonly Uint8Array[];
  /** Whose signatures under an intent are counted in place of the request's own, while the intent is carried out. */
  readonly agreed?: Agreement;
}

/** The request that an intent proposes, in the contract's words. */
export interface ProposedRequest {
  readonly method: string;
  /** `/v1/…`, parameters filled in. */
  readonly path: string;
  /** The absolute URL as the intent shows it. */
  readonly url: string;
  /** Undefined when it has none. */
  readonly body: unknown;
  /** Unix ms of the `service-request-expiry` that the intent was made with. */
  readonly expiryMs: number | undefined;
}

/** Who signed an intent's request. Whether that suffices is judged by the key quorums as they stand now. */
export interface Agreement {
  readonly intentId: string;
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKeys: readonly string[];
  readonly userIds: readonly string[];
}

export interface AfterCommitOptions {
  /** The request is done without it, and it refuses nothing: something is noted, nothing goes out. */
  readonly isNote?: boolean;
}
/** What an operation's preparation found, or the error that it met. */
export type Plan = { readonly value: unknown } | { readonly refusal: unknown };

/** Everything an operation may touch: the ports, the app, one unit of work, one instant, one proof. */
export interface OperationContext extends Services {
  readonly app: AuthenticatedApp;
  /** Inside the request's transaction for every method but GET. Kysely through `em.getKysely()`. */
  readonly em: SqlEntityManager;
  /** `clock.now()` read once when the request arrived, Unix ms. */
  readonly nowMs: number;
  readonly requestId: string;
  readonly proof: RequestProof;
  /**
   * What the operation's preparation learned outside before the transaction began; undefined where there was none, as
   * for a verb that an intent carries out, which then asks by itself. Read it by `takePlan`.
   */
  readonly plan?: Plan | undefined;
  /**
   * Runs work once the request's transaction is committed and before it is answered: what goes out into the world,
   * such as a broadcast. The work uses units of its own. An ApiError that it throws becomes the answer, the kept one
   * of an idempotency key included; what was committed stays.
   */
  afterCommit(work: () => Promise<void>, options?: AfterCommitOptions): void;
  /** Runs work in a transaction of its own, for what happens after the commit. */
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
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
