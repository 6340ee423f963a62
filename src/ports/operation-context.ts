import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Signers } from '../engine/authorization/quorum.ts';
import type { Evidence } from '../engine/authorization/signed-evidence.ts';
import type { OperationId, Operations } from '../generated/operations.ts';
import type { AuditedChange } from './audit.ts';
import type { CardIssuers, Custodians } from './cards.ts';
import type { Chains, Incentives, Prices, SwapRoutes, VaultRates } from './chains.ts';
import type { Exchange } from './exchange.ts';
import type { FiatProviders } from './fiat.ts';
import type { KeyStore } from './key-store.ts';
import type { JwksSource, Safeguards, UseLog } from './requests.ts';
import type { Clock, Entropy, Ids, Log } from './runtime.ts';
import type { WebhookSender } from './webhooks.ts';

/**
 * The data that one unit of work keeps in memory: lists of stored objects, which take effect when the unit commits, and
 * values that it has read, which are dropped when the unit ends. A savepoint has separate notes. They are added to the
 * outer notes unless the savepoint is rolled back.
 */
export interface UnitNotes {
  /** The events that the unit has stored. */
  readonly events: { readonly id: string; readonly type: string }[];
  /** Ids of the transactions that the unit has stored. */
  readonly transactions: string[];
  /** Ids of the policies that allowed the request. */
  readonly policies: string[];
  readonly changes: AuditedChange[];
  /** Whether the commit wakes the delivery of events. */
  hasDeliveries: boolean;
  /** The last record of the audit log that was written. */
  lastRecord: WrittenRecord | undefined;
  /** The settings of the app, so that all steps of a transaction use the same settings. */
  settings: { readonly appId: string; readonly text: string } | undefined;
  quorums: ReadQuorums | undefined;
  /** Whether the unit has ended. Notes that are made after the end would be lost. */
  isOver: boolean;
}

/** The identity of an audit record, before and after it has a place in the log. */
export interface WrittenRecord {
  readonly pendingId: number;
  readonly recordedAtMs: number;
}

interface ReadQuorums {
  readonly appId: string;
  readonly ids: readonly string[];
  readonly rows: QuorumRow[];
}

/**
 * A member of a key quorum, and the columns of the key quorum. A key quorum without members has one row without a
 * member.
 */
export interface QuorumRow {
  readonly id: string;
  readonly displayName: string | null;
  readonly threshold: number | null;
  /** The name of the voucher key by which its users are pinned. Null if they are not pinned. */
  readonly voucher: string | null;
  /** The id of that key. Null if the app does not have it. */
  readonly voucherKeyId: string | null;
  /** Whether the key quorum was changed. The value is true or 1. */
  readonly hasChanges: unknown;
  readonly kind: string | null;
  readonly member: string | null;
  /** The id in the app's login, only for a pinned user. */
  readonly subject: string | null;
}

/** The parts of a unit of work that code needs to write in it. */
export interface UnitContext {
  readonly em: SqlEntityManager;
  readonly notes: UnitNotes;
}

export type UnitWork<T> = (em: SqlEntityManager, notes: UnitNotes) => Promise<T>;

export function createNotes(): UnitNotes {
  return {
    events: [],
    transactions: [],
    policies: [],
    changes: [],
    hasDeliveries: false,
    lastRecord: undefined,
    settings: undefined,
    quorums: undefined,
    isOver: false,
  };
}

/** Adds the notes of a released savepoint to the surrounding notes. */
export function addNotes(outer: UnitNotes, inner: UnitNotes): void {
  outer.events.push(...inner.events);
  outer.transactions.push(...inner.transactions);
  outer.policies.push(...inner.policies);
  outer.changes.push(...inner.changes);
  outer.hasDeliveries ||= inner.hasDeliveries;
  outer.lastRecord = inner.lastRecord ?? outer.lastRecord;
  // The savepoint may have changed key quorums.
  outer.quorums = undefined;
}

export type Planned<Plan> = { readonly value: Plan } | { readonly refusal: unknown };

/**
 * Returns the plan. It must be called after `requireOwner`, so that unauthorized callers learn nothing from the
 * error.
 *
 * @throws the error of the planning.
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

/** The ports that differ between compositions. All other code is the same in every composition. */
export interface Services {
  /** Identifies this process among those that share the database. */
  readonly processId: string;
  readonly clock: Clock;
  /** The system clock, which the control plane cannot move. It limits the rate of callers. */
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
  /** Undefined if no routers for swaps are configured. */
  readonly swapRoutes?: SwapRoutes;
  /** The share of an automation's output that its gas may cost. Undefined selects the default. */
  readonly automationFeeShare?: number;
  readonly fiatProviders: FiatProviders;
  readonly cardIssuers: CardIssuers;
  readonly uses: UseLog;
  readonly webhooks: WebhookSender;
  /** Whether error responses about authorization signatures contain `data` that explains them. */
  readonly diagnostics: boolean;
  /** The default safeguards of apps. `readSafeguards` returns those of an app. */
  readonly safeguards: Safeguards;
  /** The prefix that replaces `service` in messages. Tokens contain it, so it is needed when they are signed. */
  readonly prefix: string;
  /** Funds each new wallet after the commit, if it is set. */
  readonly fundWallet?:
    | ((wallet: { readonly address: string; readonly chainType: string }) => Promise<void>)
    | undefined;
  /** The path of this server's page where users enter the code of a device, if it has one. */
  readonly devicePage?: string;
}

/** The app whose credentials the request contains. */
export interface AuthenticatedApp {
  readonly id: string;
}

/** The evidence of who sent the request. It is created before the handler runs, and `requireOwner` checks it. */
export interface RequestProof {
  /**
   * The signatures in the header `service-authorization-signature`, in base64 as sent, in order, without empty items.
   */
  readonly signatures: readonly string[];
  /** Returns every canonical payload (RFC 8785, UTF-8) that a client may have signed for this request. */
  canonicalPayloads(): readonly Uint8Array[];
  /** Returns the body as the client wrote it, to explain a signature over that text. */
  readonly sentBody?: () => string;
  /** `service-request-expiry` in Unix ms, if sent. */
  readonly expiryMs: number | undefined;
  /** The user whose access token authenticated the request instead of the app secret. */
  readonly userId: string | undefined;
  /** The session of the access token. */
  readonly sessionId?: string | undefined;
  /** The network from which an OAuth client without a secret sent the request: an IPv4 address or an IPv6 /64. */
  readonly publicClientNetwork?: string | undefined;
  /** The findings of the checks, which later steps of the same request use. */
  readonly noted: NotedProof;
  /** Returns the absolute URL of another operation of this server, under the host that the sender used. */
  urlOf(path: string): string;
  /** Returns every canonical payload that a client may have signed for a proposed request. */
  payloadsOf(proposed: ProposedRequest): readonly Uint8Array[];
  /** The signers of an intent that is being executed. They replace the signatures of the request. */
  readonly agreed?: Agreement;
  /**
   * While an automation runs, the owner who authorized it in advance; null for a wallet without an owner. It replaces
   * the signatures of the request as long as this owner owns the wallet.
   */
  readonly consentOf?: string | null;
}

/** The findings of the checks of a proof. */
interface NotedProof {
  /**
   * The canonical payloads that the signatures cover. There are several if members signed under several host names of
   * the server.
   */
  covered?: readonly Uint8Array[];
  /** The additional signer of a wallet who authorized the request in place of the owner. */
  signerId?: string | undefined;
}

/** The request that an intent proposes, with the contract's names. */
export interface ProposedRequest {
  readonly method: string;
  /** The path `/v1/…` with its parameters filled in. */
  readonly path: string;
  /** The absolute URL in the intent. */
  readonly url: string;
  /** The body. Undefined when there is none. */
  readonly body: unknown;
  /** The `service-request-expiry` of the request that created the intent, in Unix ms. */
  readonly expiryMs: number | undefined;
}

/** The signers of an intent's request. The current key quorums determine whether they are sufficient. */
export interface Agreement extends Signers {
  readonly intentId: string;
  /** Their signatures. Undefined if an earlier version received some of them. */
  readonly evidence: Evidence | undefined;
}

export type AfterCommitWork = () => Promise<void>;

interface AfterCommitOptions {
  /** Whether the work only records something. It then sends nothing and cannot change the response. */
  readonly isNote?: boolean;
}

/**
 * The context of a plan: the ports, the app, the time and the proof of the request. A plan must not change anything.
 */
export interface PlanContext extends Services {
  readonly app: AuthenticatedApp;
  /**
   * Reads outside of any transaction. Each statement takes a connection and returns it, so none is held during
   * external calls. Two reads may see different states, so `run` must read again everything that it depends on.
   */
  readonly em: SqlEntityManager;
  /** The value of `clock.now()` when the request arrived, in Unix ms. */
  readonly nowMs: number;
  readonly requestId: string;
  /** The idempotency key of the request, if it has one and the operation supports it. */
  readonly idempotencyKey?: string | undefined;
  readonly proof: RequestProof;
}

export interface OperationContext extends PlanContext, UnitContext {
  /** In the transaction of the request, except for GET requests. */
  readonly em: SqlEntityManager;
  /**
   * Runs work after the commit and before the response, for external effects such as a broadcast. The work uses
   * separate units of work. An ApiError that it throws becomes the response, and also the stored response of an
   * idempotency key. The commit stays.
   */
  afterCommit(work: AfterCommitWork, options?: AfterCommitOptions): void;
  /**
   * Stores records that must survive an error response, such as a denial. Runs in a separate transaction after the
   * rollback and before the response. If it fails, the request fails with an internal error. Dropped when the request
   * succeeds.
   */
  afterRefusal(work: UnitWork<void>): void;
  /**
   * Records the public keys whose signatures authorized the request, and the canonical payloads that they cover. A
   * stored response is repeated only for requests that these keys signed too.
   */
  noteSignatures(publicKeys: readonly string[], payloads: readonly Uint8Array[]): void;
  /**
   * Waits for earlier requests of this process with the same name, until this request has committed or failed. It is
   * for names that many requests lock, because requests that wait in the database would each hold a connection.
   * Undefined if nothing else runs at the same time.
   */
  readonly acquireMutex?: ((name: string) => Promise<void>) | undefined;
  /** Runs work in a separate transaction, for use after the commit. */
  inUnit<T>(work: UnitWork<T>): Promise<T>;
}

/**
 * The path, query and body of one operation, validated against the contract. Query values are coerced, bodies never.
 */
interface OperationInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

/** An operation. It reads the input, calls one domain verb, and returns the body of the success response. */
export type Handler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: OperationContext,
) => Promise<Operations[Id]['response']>;

/** A public operation, whose request need not have an app. */
export type OpenHandler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: Omit<OperationContext, 'app'>,
) => Promise<Operations[Id]['response']>;

/** An operation that needs external data: chains, tokens, key sets. */
export interface PlannedHandler<Id extends OperationId, Plan> {
  /**
   * Fetches the external data before the unit of work begins, so that a slow response does not hold a connection. It
   * runs once per request, before authorization and before a stored response is searched for, so it must not change
   * anything.
   *
   * @throws the error of `run`. It is stored, and thrown when `run` unwraps it.
   */
  readonly plan: (input: OperationInput<Id>, context: PlanContext) => Promise<Plan>;
  /** Runs the operation. It may run more than once, each time with the same plan. */
  readonly run: (
    input: OperationInput<Id>,
    context: OperationContext,
    planned: Planned<Plan>,
  ) => Promise<Operations[Id]['response']>;
}

/** The handlers of all operations, which the modules of `api/` export. Each handler has its own type of plan. */
export type Handlers = {
  readonly [Id in OperationId]:
    | Handler<Id>
    | {
        readonly plan: PlannedHandler<Id, unknown>['plan'];
        readonly run: PlannedHandler<Id, never>['run'];
      };
};
