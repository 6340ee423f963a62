import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Signers } from '../engine/authorization/quorum.ts';
import type { Evidence } from '../engine/authorization/signed-evidence.ts';
import type { OperationId, Operations } from '../generated/operations.ts';
import type { CardIssuers, Custodians } from './cards.ts';
import type { Chains, Incentives, Prices, SwapRoutes, VaultRates } from './chains.ts';
import type { Exchange } from './exchange.ts';
import type { FiatProviders } from './fiat.ts';
import type { KeyStore } from './key-store.ts';
import type { JwksSource, Safeguards, UseLog } from './requests.ts';
import type { Clock, Entropy, Ids, Log } from './runtime.ts';
import type { UnitContext, UnitWork } from './unit-notes.ts';
import type { WebhookSender } from './webhooks.ts';

/** The plan of an operation, or why there is none. */
export type Planned<Plan> = { readonly value: Plan } | { readonly refusal: unknown };

/**
 * Returns the plan.
 *
 * @throws the error of the planning. Unwrap after `requireOwner`, so that unauthorized callers learn nothing from
 * it.
 */
export function unwrapPlan<Plan>(planned: Planned<Plan>): Plan {
  if ('refusal' in planned) throw planned.refusal;
  return planned.value;
}

/** Makes a plan and catches its error. */
export async function keepPlan<Plan>(plan: () => Promise<Plan>): Promise<Planned<Plan>> {
  try {
    return { value: await plan() };
  } catch (refusal) {
    return { refusal };
  }
}

/** The ports that differ between compositions. Everything else is the same code everywhere. */
export interface Services {
  /** Identifies this process among those that share the database. */
  readonly processId: string;
  readonly clock: Clock;
  /** The clock of the machine, which the control plane cannot move: for the pace of callers. */
  readonly machine: Clock;
  readonly entropy: Entropy;
  readonly ids: Ids;
  readonly keyStore: KeyStore;
  readonly log: Log;
  readonly jwks: JwksSource;
  readonly chains: Chains;
  readonly prices: Prices;
  readonly custodians: Custodians;
  readonly exchange?: Exchange;
  readonly incentives?: Incentives;
  readonly vaultRates?: VaultRates;
  /** Undefined without routers for swaps. */
  readonly swapRoutes?: SwapRoutes;
  /** The share of what an automation brings that its gas may cost; undefined is the default. */
  readonly automationFeeShare?: number;
  readonly fiatProviders: FiatProviders;
  readonly cardIssuers: CardIssuers;
  readonly uses: UseLog;
  readonly webhooks: WebhookSender;
  /** Whether refusals of authorization signatures contain `data` that explains them. */
  readonly diagnostics: boolean;
  /** The default safeguards of apps. Read those of an app with `readSafeguards`. */
  readonly safeguards: Safeguards;
  /** The word that replaces `service` on the wire. Tokens contain it, so it is needed when they are signed. */
  readonly prefix: string;
  /** The path of this server's page where users enter the code of a device, if it has one. */
  readonly devicePage?: string;
}

/** The app whose credentials the request contains. */
export interface AuthenticatedApp {
  readonly id: string;
}

/** The evidence of who sent the request. Created before the handler runs, checked by `requireOwner`. */
export interface RequestProof {
  /** Signatures of the header `service-authorization-signature`, base64 as sent, in order, without empty items. */
  readonly signatures: readonly string[];
  /** Every canonical payload (RFC 8785, UTF-8) that a client may have signed for this request. */
  canonicalPayloads(): readonly Uint8Array[];
  /** The body as the client wrote it, to explain a signature over that text. */
  readonly sentBody?: () => string;
  /** `service-request-expiry` in Unix ms, if sent. */
  readonly expiryMs: number | undefined;
  /** The user whose access token authenticated the request instead of the app secret. */
  readonly userId: string | undefined;
  /** The session of that access token. */
  readonly sessionId?: string | undefined;
  /** Where an OAuth client without a secret sent the request from: an IPv4 address or an IPv6 /64. */
  readonly publicClientNetwork?: string | undefined;
  /** The findings of the checks, which later steps of the same request use. */
  readonly noted: NotedProof;
  /** The absolute URL of another operation of this server, as the sender of this request knows it. */
  urlOf(path: string): string;
  /** Every canonical payload that a client may have signed for a proposed request. */
  payloadsOf(proposed: ProposedRequest): readonly Uint8Array[];
  /** While an intent is executed: its signers, who count instead of the signatures of the request. */
  readonly agreed?: Agreement;
  /**
   * While an automation runs: the owner who agreed to it in advance, null for a wallet without one. Counts instead of
   * the signatures of the request for as long as this owner owns the wallet.
   */
  readonly consentOf?: string | null;
}

/** The findings of the checks of a proof. */
interface NotedProof {
  /**
   * The canonical payloads that the signatures cover: several where members signed under several names of the server.
   */
  covered?: readonly Uint8Array[];
  /** The additional signer of a wallet who authorized the request in place of the owner. */
  signerId?: string | undefined;
}

/** The request that an intent proposes, with the contract's names. */
export interface ProposedRequest {
  readonly method: string;
  /** `/v1/…` with its parameters filled in. */
  readonly path: string;
  /** The absolute URL as shown in the intent. */
  readonly url: string;
  /** Undefined when it has none. */
  readonly body: unknown;
  /** `service-request-expiry` of the request that created the intent, Unix ms. */
  readonly expiryMs: number | undefined;
}

/** The signers of an intent's request. The current key quorums determine whether they are sufficient. */
export interface Agreement extends Signers {
  readonly intentId: string;
  /** Their signatures; undefined where some were received by an earlier version. */
  readonly evidence: Evidence | undefined;
}

export type AfterCommitWork = () => Promise<void>;

interface AfterCommitOptions {
  /** The work only records something: it sends nothing and cannot change the response. */
  readonly isNote?: boolean;
}

/**
 * The context of a plan: the ports, the app, the time and the proof of the request. A plan must not change anything.
 */
export interface PlanContext extends Services {
  readonly app: AuthenticatedApp;
  /**
   * Reads outside any transaction: each statement takes a connection and returns it, so none is held during external
   * calls. Two reads may see different states, so `run` must read again what it depends on.
   */
  readonly em: SqlEntityManager;
  /** `clock.now()` read once when the request arrived, Unix ms. */
  readonly nowMs: number;
  readonly requestId: string;
  /** The idempotency key of the request, if it has one and the operation supports it. */
  readonly idempotencyKey?: string | undefined;
  readonly proof: RequestProof;
}

/** The context of an operation: that of its plan, and one unit of work. */
export interface OperationContext extends PlanContext, UnitContext {
  /** In the transaction of the request for every method except GET. */
  readonly em: SqlEntityManager;
  /**
   * Runs work after the commit and before the response, for external effects such as a broadcast. The work uses
   * separate units of work. An ApiError that it throws becomes the response, also the stored one of an idempotency
   * key; the commit stays.
   */
  afterCommit(work: AfterCommitWork, options?: AfterCommitOptions): void;
  /**
   * Stores records that must survive a refusal, such as a denial. Runs in a separate transaction after the rollback
   * and before the response; if it fails, the request fails with an internal error. Dropped when the request
   * succeeds.
   */
  afterRefusal(work: UnitWork<void>): void;
  /**
   * Notes the public keys whose signatures authorized the request, and the canonical payloads that they cover. The
   * response, if it is stored, is repeated only to requests that these keys signed too.
   */
  noteSignatures(publicKeys: readonly string[], payloads: readonly Uint8Array[]): void;
  /**
   * Waits for earlier requests of this process with the same name, until this request has committed or failed. For
   * names that many requests lock: requests that waited in the database would each hold a connection. Absent where
   * nothing else runs at the same time.
   */
  readonly acquireMutex?: ((name: string) => Promise<void>) | undefined;
  /** Runs work in a separate transaction, for use after the commit. */
  inUnit<T>(work: UnitWork<T>): Promise<T>;
}

/** Path, query and body of one operation, validated against the contract; query values are coerced, bodies never. */
interface OperationInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

/** An operation: reads the input, calls one domain verb, returns the body of the success response. */
export type Handler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: OperationContext,
) => Promise<Operations[Id]['response']>;

/** A public operation: the request need not have an app. */
export type OpenHandler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: Omit<OperationContext, 'app'>,
) => Promise<Operations[Id]['response']>;

/** An operation that needs external data: chains, tokens, key sets. */
export interface PlannedHandler<Id extends OperationId, Plan> {
  /**
   * Fetches the external data before the unit of work begins, so that a slow response does not hold a connection. It
   * runs once per request, before authorization and before a stored response is looked up, so it must not change
   * anything.
   *
   * @throws the refusal of `run`: it is stored, and thrown when `run` unwraps it.
   */
  readonly plan: (input: OperationInput<Id>, context: PlanContext) => Promise<Plan>;
  /** May run more than once, each time with the same plan. */
  readonly run: (
    input: OperationInput<Id>,
    context: OperationContext,
    planned: Planned<Plan>,
  ) => Promise<Operations[Id]['response']>;
}

/** Every operation, as the modules of `api/` export them. Each has a plan of its own type. */
export type Handlers = {
  readonly [Id in OperationId]:
    | Handler<Id>
    | {
        readonly plan: PlannedHandler<Id, unknown>['plan'];
        readonly run: PlannedHandler<Id, never>['run'];
      };
};
