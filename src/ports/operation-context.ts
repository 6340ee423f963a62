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
 * The in-memory state of one unit of work: lists of the objects that it has stored, which take effect at the commit,
 * and values that it has read, which are dropped at its end. A savepoint has notes of its own. They are added to the
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
  /** Whether the unit has stored deliveries of events, so that the commit wakes the job that sends them. */
  hasDeliveries: boolean;
  /** The last record that the unit has written to the audit log; undefined before the first. */
  lastRecord: WrittenRecord | undefined;
  /** The settings of the app, so that all steps of a transaction use the same settings. */
  settings: { readonly appId: string; readonly text: string } | undefined;
  quorums: ReadQuorums | undefined;
  /** Whether the unit has ended. Anything noted after that would be lost. */
  isOver: boolean;
}

/** Identifies a record of the audit log, before and after it gets a place in the log. */
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
 * One row per member of a key quorum, with the columns of the key quorum. A key quorum without members has one row
 * without a member.
 */
export interface QuorumRow {
  readonly id: string;
  readonly displayName: string | null;
  readonly threshold: number | null;
  /** The name of the voucher key that pins its users; null if they are not pinned. */
  readonly voucher: string | null;
  /** The id of the voucher key; null if the app does not have it. */
  readonly voucherKeyId: string | null;
  /** Whether the key quorum was changed: true or 1, depending on the database. */
  readonly hasChanges: unknown;
  readonly kind: string | null;
  readonly member: string | null;
  /** The user's id in the app's own login; only for a pinned user. */
  readonly subject: string | null;
}

/** The context of code that writes in a unit of work. */
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
  // The savepoint may have changed key quorums, so they are read again.
  outer.quorums = undefined;
}

export type Planned<Plan> = { readonly value: Plan } | { readonly refusal: unknown };

/**
 * Returns the plan. Call it after `requireAuthorization`, so that unauthorized callers learn nothing from the error.
 *
 * @throws the error of `plan`.
 */
export function unwrapPlan<Plan>(planned: Planned<Plan>): Plan {
  if ('refusal' in planned) throw planned.refusal;
  return planned.value;
}

/** Runs `plan` and catches its error, which `unwrapPlan` throws later. */
export async function tryPlan<Plan>(plan: () => Promise<Plan>): Promise<Planned<Plan>> {
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
  /** The system clock, which the control plane cannot change. Rate limits use it. */
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
  /** The routers of swaps; undefined if none are configured. */
  readonly swapRoutes?: SwapRoutes;
  /** The largest share (0 to 1) of an automation's proceeds that its gas may cost. Undefined selects the default. */
  readonly automationFeeShare?: number;
  readonly fiatProviders: FiatProviders;
  readonly cardIssuers: CardIssuers;
  readonly uses: UseLog;
  readonly webhooks: WebhookSender;
  /** Whether error responses about authorization signatures contain `data` that explains them. */
  readonly diagnostics: boolean;
  /** The default safeguards. `readSafeguards` returns the safeguards of one app. */
  readonly safeguards: Safeguards;
  /** The brand that replaces `service` in messages and tokens. */
  readonly prefix: string;
  /** Funds each new wallet after the commit; undefined if new wallets start empty. */
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

/**
 * What a request shows about its sender. It is created before the handler runs, and `requireAuthorization` checks it.
 */
export interface RequestProof {
  /**
   * The signatures in the header `service-authorization-signature`, in base64 as sent, in order, without empty items.
   */
  readonly signatures: readonly string[];
  /** Returns every canonical payload (RFC 8785, UTF-8) that a client may have signed for this request. */
  canonicalPayloads(): readonly Uint8Array[];
  /** Returns the body as the client wrote it, for explanations of signatures over that text. */
  readonly sentBody?: () => string;
  /** `service-request-expiry` in Unix ms, if sent. */
  readonly expiryMs: number | undefined;
  /** The user whose access token authenticated the request; undefined if the app secret did. */
  readonly userId: string | undefined;
  /** The session of the access token, if there is one. */
  readonly sessionId?: string | undefined;
  /** The network from which an OAuth client without a secret sent the request: an IPv4 address or an IPv6 /64. */
  readonly publicClientNetwork?: string | undefined;
  /** Returns the absolute URL of another operation of this server, under the host that the sender used. */
  urlOf(path: string): string;
  /** Returns every canonical payload that a client may have signed for a proposed request. */
  payloadsOf(proposed: ProposedRequest): readonly Uint8Array[];
  /** Only while an intent is executed: its signers, who replace the signatures of the request. */
  readonly agreement?: Agreement;
  /**
   * While an automation runs, the owner who authorized it in advance; null for a wallet without an owner. It replaces
   * the signatures of the request as long as this owner owns the wallet.
   */
  readonly consentOf?: string | null;
}

/** The request that an intent proposes, with the neutral names of the API. */
export interface ProposedRequest {
  readonly method: string;
  /** The path `/v1/…` with its parameters filled in. */
  readonly path: string;
  /** The absolute URL in the intent. */
  readonly url: string;
  /** The body; undefined if the request has none. */
  readonly body: unknown;
  /** The `service-request-expiry` of the request that created the intent, in Unix ms; undefined if it had none. */
  readonly expiryMs: number | undefined;
}

/**
 * The members who have authorized an intent, and what they signed. The current key quorum decides whether they suffice.
 */
export interface Agreement extends Signers {
  readonly intentId: string;
  /** The members' signatures; undefined if an earlier version received some of them and did not store the evidence. */
  readonly evidence: Evidence | undefined;
}

export type AfterCommitWork = () => Promise<void>;

interface AfterCommitOptions {
  /**
   * Whether the work only records something: it sends nothing and cannot change the response. Only
   * `execute-intent.ts` reads this. An intent that leaves nothing but such work is settled before the commit.
   */
  readonly isNote?: boolean;
}

/**
 * The context of a plan: the ports, the app, the time and the proof of the request. A plan must not change anything.
 */
export interface PlanContext extends Services {
  readonly app: AuthenticatedApp;
  /**
   * Reads outside of any transaction. Each statement takes a connection and returns it, so none is held during external
   * calls. Two reads may see different states, so `run` must read everything that it depends on again.
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
  /** The entity manager of the unit of work. It is in the request's transaction, except for GET requests. */
  readonly em: SqlEntityManager;
  /**
   * Registers work for after the commit and before the response, for external effects such as a broadcast. The work
   * uses units of work of its own. An ApiError that it throws becomes the response, and also the stored response of an
   * idempotency key. The commit stays.
   */
  afterCommit(work: AfterCommitWork, options?: AfterCommitOptions): void;
  /**
   * Registers work that stores records which must survive an error response, such as a denial. It runs in a separate
   * transaction after the rollback and before the response. If it fails, the request fails with an internal error. It
   * does not run if the request succeeds.
   */
  afterRefusal(work: UnitWork<void>): void;
  /**
   * Records the public keys whose signatures authorized the request, and the canonical payloads that these signatures
   * cover. A stored response is repeated only for requests that the same keys have signed.
   */
  noteSignatures(publicKeys: readonly string[], payloads: readonly Uint8Array[]): void;
  /**
   * Waits until earlier requests of this process with the same name have committed or failed. It is for names that many
   * requests lock: requests that wait in the database would each hold a connection. Undefined if the key store is in
   * this process, because then no request waits for the key store while it holds a lock.
   */
  readonly acquireMutex?: ((name: string) => Promise<void>) | undefined;
  /** Runs work in a separate transaction, for use after the commit. */
  inUnit<T>(work: UnitWork<T>): Promise<T>;
}

/** The validated path, query and body of one operation. Query values are coerced to their types, bodies never. */
interface OperationInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

/**
 * The handler of an operation. It reads the input, calls one domain verb, and returns the body of the success response.
 */
export type Handler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: OperationContext,
) => Promise<Operations[Id]['response']>;

/** The handler of a public operation, whose requests need not name an app. */
export type OpenHandler<Id extends OperationId> = (
  input: OperationInput<Id>,
  context: Omit<OperationContext, 'app'>,
) => Promise<Operations[Id]['response']>;

/** The handler of an operation that needs external data, such as the state of a chain or the keys of a token issuer. */
export interface PlannedHandler<Id extends OperationId, Plan> {
  /**
   * Fetches external data before the unit of work begins, so that a slow response does not hold a connection. It runs
   * once per request, before authorization and before a stored response is looked up, so it must not change anything.
   * Its error is kept, and thrown when `run` unwraps the plan.
   */
  readonly plan: (input: OperationInput<Id>, context: PlanContext) => Promise<Plan>;
  /** Runs the operation. It may run more than once, each time with the same plan. */
  readonly run: (
    input: OperationInput<Id>,
    context: OperationContext,
    planned: Planned<Plan>,
  ) => Promise<Operations[Id]['response']>;
}

/** The handlers of all operations, which the modules of `api/` export. Each has its own type of plan. */
export type Handlers = {
  readonly [Id in OperationId]:
    | Handler<Id>
    | {
        readonly plan: PlannedHandler<Id, unknown>['plan'];
        readonly run: PlannedHandler<Id, never>['run'];
      };
};
