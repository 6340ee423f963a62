import type { SqlEntityManager } from '@mikro-orm/sql';
import type { OperatorCaller } from '../domain/access/operators/operator.ts';
import type { AnalysisContext } from '../domain/requests/policy-analysis/explain-policy.ts';
import type { CardEnvironment, CardPayment } from '../ports/cards.ts';
import type { CustomerKind, CustomerSnapshot, FiatEnvironment, FiatProviders } from '../ports/fiat.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { UnitWork } from '../ports/operation-context.ts';
import type { JwksSource } from '../ports/requests.ts';
import type { Clock, Entropy, Ids, Log } from '../ports/runtime.ts';
import type { ControllableChains } from './controllable-chains.ts';
import type { DocumentedErrors, FaultRules } from './faults/fault-rules.ts';
import type { OperationId, Operations } from './generated/operations.ts';
import { registry } from './generated/registry.ts';
import type { SandboxSigner } from './generated/schemas.ts';
import type { MovedByRpc } from './json-rpc.ts';
import type { OwnApi } from './requests/own-api.ts';
import type { Redaction } from './requests/redact.ts';
import type { RequestLog } from './requests/request-log.ts';
import type { MeasureCoverage } from './requests/request-view.ts';
import type { SeededKey } from './scenarios.ts';

/** A clock that can be frozen and set, in Unix milliseconds. */
export interface ControllableClock extends Clock {
  readonly isFrozen: boolean;
  set(nowMs: number): void;
  advance(durationMs: number): void;
  freeze(): void;
  resume(): void;
}

/** The events of the API document. In branded names and ids, `service` is replaced by the configured prefix. */
export interface EventContract {
  types(): Promise<readonly string[]>;
  /** Converts a branded event type, or a pattern of types, to the API document's name. */
  readType(type: string): string;
  /** Returns the error message for an unknown event type or pattern. */
  unknownType(type: string): Promise<string>;
  /** Returns the API document's example payload with branded names. */
  example(type: string): Promise<unknown>;
  /** Converts a branded payload to the API document's names. */
  read(payload: unknown): unknown;
  /** Converts a stored payload to the branded form in which it is delivered. */
  write(payload: string): unknown;
  /** Returns the first violation of the API document in a payload, or undefined if the payload is valid. */
  fault(type: string, payload: unknown): Promise<{ pointer: string; message: string } | undefined>;
}

/** Runs the operations that explain, replay and lint policies. */
export interface PolicyAnalysis {
  /** Stores all uses of wallets that were recorded so far, then runs `work`. */
  readonly analyze: <T>(work: (context: AnalysisContext) => Promise<T>) => Promise<T>;
}

/** A tester's decision about a customer of the simulated identity office. */
interface CustomerDecision {
  readonly outcome:
    | 'terms_accepted'
    | 'approved'
    | 'rejected'
    | 'incomplete'
    | 'under_review'
    | 'paused'
    | 'offboarded';
  readonly reasons?: readonly string[] | undefined;
  readonly requirementsDue?: readonly string[] | undefined;
  readonly endorsements?: readonly { readonly name: string; readonly status: string }[] | undefined;
}

/** The content of the hosted page of the simulated identity office about a customer. */
export interface HostedVerification {
  readonly environment: FiatEnvironment;
  readonly kind: CustomerKind;
  readonly snapshot: CustomerSnapshot;
  /** Where the link leads the customer afterwards. */
  readonly redirectUri: string | null;
}

/**
 * The bank's money in one currency, as decimal numbers. `capital` plus `paid_in` equals the sum of the other fields.
 */
interface FiatBooks {
  readonly environment: FiatEnvironment;
  readonly currency: string;
  readonly capital: string;
  readonly paid_in: string;
  readonly paid_out: string;
  readonly refunded: string;
  readonly fees: string;
  readonly developer_fees: string;
  readonly balance: string;
}

/** Controls the simulated bank and identity office. Ids are the provider's ids. */
export interface ControllableFiat {
  decide(environment: FiatEnvironment, customerId: string, decision: CustomerDecision): Promise<boolean>;
  /** Returns the content of the hosted page, or undefined for an unknown token. */
  page(token: string): Promise<HostedVerification | undefined>;
  /** Takes a customer's action on the hosted page. Returns false if the page does not offer it. */
  usePage(token: string, action: 'accept_terms' | 'complete' | 'decline'): Promise<boolean>;
  /** Makes the provider available or unavailable. While it is unavailable, requests cannot reach it. */
  setUp(isUp: boolean): void;
  /**
   * Reports an incoming payment. Returns undefined for an unknown account, and `amount` for an amount that cannot be
   * paid.
   */
  receive(
    environment: FiatEnvironment,
    deposit: {
      readonly accountId: string;
      readonly amount: string;
      readonly rail?: string | undefined;
      readonly senderName?: string | undefined;
      readonly reference: string;
      readonly outcome: 'completed' | 'in_review' | 'refunded';
    },
  ): Promise<{ readonly id: string } | 'amount' | undefined>;
  /** Releases or refunds a deposit. Returns false for an unknown deposit, and for one that has already ended. */
  decideDeposit(
    environment: FiatEnvironment,
    id: string,
    outcome: 'completed' | 'refunded',
  ): Promise<boolean>;
  /** Sets the outcome of a payout. Returns false for an unknown payout, and for one that has already ended. */
  decidePayout(
    environment: FiatEnvironment,
    id: string,
    outcome: 'processed' | 'in_review' | 'returned' | 'error',
  ): Promise<boolean>;
  /** Returns where the bank's money is, in each environment and currency. */
  books(): Promise<readonly FiatBooks[]>;
}

/** A payment or a refund, with the fields that only testers see. */
export interface TestPayment extends CardPayment {
  /** The card's id at the issuer. */
  readonly cardId: string;
  readonly declineReason: string | null;
  readonly hash: string | null;
}

/**
 * A payment after a tester's action, or the reason why the payment does not allow the action. Undefined for an
 * unknown payment.
 */
type ControlledPayment = TestPayment | 'amount' | 'funds' | 'status' | undefined;

/** Controls the merchants of the simulated card issuer. Ids are the issuer's ids. */
export interface ControllableCards {
  /** Requests a payment with a card. Returns undefined for an unknown card. */
  authorize(
    environment: CardEnvironment,
    order: {
      readonly cardId: string;
      readonly cents: bigint;
      readonly merchant: string | null;
      readonly reference: string;
      readonly pin?: string | undefined;
      readonly isDeclined: boolean;
    },
  ): Promise<TestPayment | undefined>;
  capture(id: string, cents: bigint | undefined): Promise<ControlledPayment>;
  release(id: string, status: 'reversed' | 'expired'): Promise<ControlledPayment>;
  refund(
    id: string,
    order: { readonly cents: bigint | undefined; readonly reference: string },
  ): Promise<ControlledPayment>;
  /** Makes the issuer available or unavailable. While it is unavailable, requests cannot reach it. */
  setUp(isUp: boolean): void;
}

/** Describes a snapshot of the whole sandbox. */
export interface SnapshotFacts {
  readonly name: string;
  readonly bytes: number;
  /**
   * When the snapshot was saved, by the system clock and by the sandbox's clock (Unix ms), and by which version. Null
   * for an incomplete file.
   */
  readonly savedAtMs: number | null;
  readonly nowMs: number | null;
  readonly version: string | null;
}

/** Saves and loads the state of the whole sandbox. Throws an ApiError with the reason if it cannot load a snapshot. */
export interface ControllableSnapshots {
  list(): Promise<readonly SnapshotFacts[]>;
  /** Saves the state under a name. Replaces a snapshot with the same name. */
  save(name: string): Promise<SnapshotFacts>;
  load(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Returns the bytes of the file. */
  read(name: string): Promise<Buffer>;
  /**
   * Stores a snapshot file of this or another sandbox.
   *
   * @throws InvalidSnapshotError for any other content.
   */
  write(name: string, content: Buffer): Promise<SnapshotFacts>;
}

/** The prices of assets in US dollars, by lower-case symbol. */
export interface ControllablePrices {
  all(): Promise<ReadonlyMap<string, string>>;
  /** Changes prices. Null restores the initial price. */
  move(changes: ReadonlyMap<string, string | null>): Promise<void>;
}

/** Simulates the login of apps that use custom authentication. */
export interface SimulatedLogin {
  readonly issuer: string;
  /** The public key as PEM. */
  readonly verificationKey: string;
  jwk(): Promise<{ readonly x?: string; readonly y?: string }>;
  /** Signs a token that names a `custom_user_id` and is valid for an hour from `nowMs`. */
  issue(
    customUserId: string,
    options: { readonly claim: string; readonly audience: string | undefined; readonly nowMs: number },
  ): Promise<string>;
}

/** The parts of a client's configuration that only the composition knows. */
interface ClientConfig {
  /** The secret of the app with which the sandbox was started. */
  readonly appSecret: string;
  /** The file of the certificate authority. */
  readonly caFile: string;
  readonly signers: readonly { readonly name: SandboxSigner; readonly publicKey: string }[];
  /** Returns the base URL of the JSON-RPC. Append a slash and the name of a chain. */
  rpcUrl(): string;
}

/** Everything that a handler of the control plane can use. */
export interface ControlContext extends PolicyAnalysis {
  /** The caller that is recorded as the author of operators' actions. */
  readonly by: OperatorCaller;
  /** The id of the app with which the sandbox was started. */
  readonly appId: string;
  readonly events: EventContract;
  document(): object;
  /** The log of requests; undefined if requests are not recorded. */
  readonly requests: RequestLog | undefined;
  readonly redaction: Redaction;
  readonly ownApi: OwnApi;
  readonly measureCoverage: MeasureCoverage;
  readonly faults: FaultRules;
  /** Returns the errors that the API document lists for each operation. */
  documentedErrors(): DocumentedErrors;
  /**
   * Returns how a response of an operation differs from the API document, with a JSON pointer into a fault rule.
   * Returns undefined if it does not differ.
   */
  responseFault(
    operation: string,
    status: number,
    body: unknown,
  ): { readonly pointer: string; readonly message: string } | undefined;
  /** Returns the URL for clients on this machine. */
  baseUrl(): string;
  readonly clientConfig: ClientConfig;
  readonly version: string;
  /** Returns the id of the event log, which changes when a reset or a snapshot replaces the events. */
  eventLog(): string;
  /** Returns the sequence number of the last event that the log had when it got its id. */
  eventLogBeginsAfter(): number;
  /** Aborted when the caller disconnects or the server stops. Handlers must then return. */
  readonly signal: AbortSignal;
  readonly clock: ControllableClock;
  readonly movedByRpc: MovedByRpc;
  readonly entropy: Entropy;
  readonly ids: Ids;
  readonly keyStore: KeyStore;
  /** Returns the simulated login of apps with custom authentication. Loading a snapshot may replace it. */
  login(): SimulatedLogin;
  /** The word for `service` in ids, and in the issuer of tokens. */
  readonly prefix: string;
  readonly jwks: JwksSource;
  readonly chains: ControllableChains;
  readonly fiat: ControllableFiat;
  readonly cards: ControllableCards;
  readonly fiatProviders: FiatProviders;
  readonly log: Log;
  readonly prices: ControllablePrices;
  /** Resets the sandbox, including its clock and its seeded randomness, to the state after the start. */
  reset(): Promise<void>;
  readonly snapshots: ControllableSnapshots;
  /** The names of the people who have the seed data's keys, by public key. */
  readonly keyNames: ReadonlyMap<string, string>;
  readonly seededKeys: { readonly alice: SeededKey; readonly bob: SeededKey };
  /**
   * Runs the jobs for everything that is due at the clock's current time, except maintenance jobs. Waits at most
   * `patienceMs` for the responses of webhook endpoints.
   */
  actJobs(patienceMs: number): Promise<void>;
  /** Runs all jobs that are due at the clock's current time. */
  runDueJobs(): Promise<void>;
  /** Runs all due jobs, and waits for the responses of webhook endpoints. */
  finishJobs(): Promise<void>;
  read<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
  /** Runs `work` in one transaction. */
  change<T>(work: UnitWork<T>): Promise<T>;
  /** Runs `work` in one transaction, then clears the cache of apps. */
  changeApps<T>(work: UnitWork<T>): Promise<T>;
}

/** Path, query and body of an operation of the control plane, validated against its API document. */
export interface ControlInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly query: Operations[Id]['query'];
  readonly body: Operations[Id]['body'];
}

export type Handler<Id extends OperationId> = (
  input: ControlInput<Id>,
  context: ControlContext,
) => Promise<Operations[Id]['response']>;

/** A handler that only analyzes policies. The admin port of production runs the same handlers. */
export type AnalysisHandler<Id extends OperationId> = (
  input: ControlInput<Id>,
  analysis: PolicyAnalysis,
) => Promise<Operations[Id]['response']>;

/** The part of the context that operations of production's admin port have too. */
export type OperatorContext = Pick<ControlContext, 'read' | 'change' | 'entropy' | 'ids' | 'by'> & {
  readonly clock: Clock;
};

/** A handler of an operation that production has too. */
export type OperatorHandler<Id extends OperationId> = (
  input: ControlInput<Id>,
  context: OperatorContext,
) => Promise<Operations[Id]['response']>;

/** Every operation's handler, as the modules of `handlers/` export them. */
export type Handlers = { readonly [Id in OperationId]: Handler<Id> };

/**
 * A handler with erased input types. In the registry, the compiler checks that each handler accepts its validated
 * input.
 */
export type ControlHandler = (
  input: { path: unknown; query: unknown; body: unknown },
  context: ControlContext,
) => Promise<unknown>;

export const controlHandlers: Readonly<Record<string, ControlHandler>> = Object.fromEntries(
  Object.entries(registry as object),
);
