import type { SqlEntityManager } from '@mikro-orm/sql';
import type { OperationId, Operations } from './generated/operations.ts';
import type { Chains } from './ports/chains.ts';
import type { Clock } from './ports/clock.ts';
import type { Custodians } from './ports/custodians.ts';
import type { Entropy } from './ports/entropy.ts';
import type { Exchange } from './ports/exchange.ts';
import type { Ids } from './ports/ids.ts';
import type { JwksSource } from './ports/jwks.ts';
import type { KeyVault } from './ports/key-vault.ts';
import type { Log } from './ports/log.ts';
import type { Prices } from './ports/prices.ts';
import type { Safeguards } from './ports/safeguards.ts';
import type { UseLog } from './ports/use-log.ts';
import type { WebhookSender } from './ports/webhooks.ts';
import type { Prepared } from './prepared.ts';

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
  /** The safeguards of apps whose settings do not say otherwise. Read them with `readSafeguards`. */
  readonly safeguards: Safeguards;
  /** The word that stands for `service` on the wire. Tokens are signed with it inside, so they need it in time. */
  readonly prefix: string;
}

/** The app whose credentials the request carried. */
export interface AuthenticatedApp {
  readonly id: string;
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

interface AfterCommitOptions {
  /** The request is done without it, and it refuses nothing: something is noted, nothing goes out. */
  readonly isNote?: boolean;
}

/** What a preparation may touch: the ports, the app, one instant, one proof. It changes nothing. */
export interface PreparationContext extends Services {
  readonly app: AuthenticatedApp;
  /**
   * Reads outside of any transaction: each statement takes a connection and returns it, so none is held while something
   * outside is asked. Two reads may see different states; `run` reads again what must hold.
   */
  readonly em: SqlEntityManager;
  /** `clock.now()` read once when the request arrived, Unix ms. */
  readonly nowMs: number;
  readonly requestId: string;
  readonly proof: RequestProof;
}

/** Everything an operation may touch: what a preparation may, and one unit of work. */
export interface OperationContext extends PreparationContext {
  /** Inside the request's transaction for every method but GET. Kysely through `em.getKysely()`. */
  readonly em: SqlEntityManager;
  /**
   * Runs work once the request's transaction is committed and before it is answered: what goes out into the world,
   * such as a broadcast. The work uses units of its own. An ApiError that it throws becomes the answer, the kept one
   * of an idempotency key included; what was committed stays.
   */
  afterCommit(work: () => Promise<void>, options?: AfterCommitOptions): void;
  /**
   * Stores what must be kept although the request is refused and its own work undone, such as a denial. Runs once the
   * work is undone, in a transaction of its own, before the refusal is answered; when it fails, the request has failed.
   * Forgotten when the request succeeds.
   */
  afterRefusal(work: (em: SqlEntityManager) => Promise<void>): void;
  /** Runs work in a transaction of its own, for what happens after the commit. */
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** Path, query and body of one operation, validated against the contract; query values are coerced, bodies never. */
interface OperationInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

/** `run` of a handler file: reads the input, calls one domain verb, returns the body of the success response. */
export type Handler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: OperationContext,
) => Promise<Operations[Id]['response']>;

/** `run` of an operation that is open to all: the request need not name an app. */
export type OpenHandler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: Omit<OperationContext, 'app'>,
) => Promise<Operations[Id]['response']>;

/**
 * `prepare` of a handler file: asks the world outside (chains, tokens, key sets) for what `run` needs, before the unit
 * of work opens, so that a slow answer holds no connection. It runs once per request and before it is known whether the
 * caller may act or whether the answer is kept already, so it must not change anything.
 *
 * @throws what `run` shall refuse with: kept, and thrown where `run` unwraps it.
 */
export type Preparation<Id extends OperationId, Found> = (
  input: OperationInput<Id>,
  context: PreparationContext,
) => Promise<Found>;

/** `run` of a handler file that has a `prepare`. It may run more than once, each time with the same `prepared`. */
export type PreparedHandler<Id extends OperationId, Found> = (
  input: OperationInput<Id>,
  context: OperationContext,
  prepared: Prepared<Found>,
) => Promise<Operations[Id]['response']>;

/** What the handler file of an operation must export: `run` alone, or `prepare` and the `run` that fits it. */
export type HandlerFile<Id extends OperationId, File> = File extends {
  readonly prepare: Preparation<Id, infer Found>;
}
  ? { readonly prepare: Preparation<Id, Found>; readonly run: PreparedHandler<Id, Found> }
  : { readonly prepare?: never; readonly run: Handler<Id> };

/** The handler file of every operation. */
export type Handlers<Files extends Record<OperationId, unknown>> = {
  readonly [Id in OperationId]: HandlerFile<Id, Files[Id]>;
};
