import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AuthenticatedApp, RequestProof } from '../ports/operation-context.ts';
import type { StoredEffects, Why } from '../ports/requests.ts';
import type { Operation } from './route-index.ts';

/** The operation of a path and method, and the decoded path parameters. */
export interface Route {
  readonly operation: Operation;
  readonly params: Record<string, string>;
}

/** One request on its way through the pipeline. Each step reads what earlier steps have set. */
export interface RequestState {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Sent as `x-request-id`, logged, and contained in every 500. */
  readonly id: string;
  readonly method: string;
  /** Path and query exactly as sent. */
  readonly target: string;
  /** The path alone, as sent. */
  readonly path: string;
  /** With the contract's header names, for any brand. */
  readonly headers: IncomingHttpHeaders;
  /** `clock.now()` on arrival, Unix ms. */
  readonly nowMs: number;
  readonly remoteAddress: string;
  rawBody: Buffer;
  isBodyRead: boolean;
  route: Route | undefined;
  /** Undefined before authentication, and for public operations that are called without an app. */
  app: AuthenticatedApp | undefined;
  /** Whether the secret of `app` was verified. Otherwise anybody who knows the app's id may be the caller. */
  hasAppSecret: boolean;
  /** The user whose access token was sent instead of the app's secret. */
  userId: string | undefined;
  /** The session of that access token. */
  sessionId: string | undefined;
  /** The network of an OAuth client that has no secret; undefined for all other callers. */
  publicClientNetwork: string | undefined;
  query: Record<string, unknown>;
  /** The parsed body with the contract's names; undefined if the operation has none. */
  body: unknown;
  proof: RequestProof | undefined;
  /** The public keys whose signatures authorized the request. */
  signers: ReadonlySet<string> | undefined;
  /** The charged guess of a request with a one-time code, until it is settled. */
  guess: Guess | undefined;
  /** The changes that the units of work of the request have stored, if they are recorded. */
  effects: readonly StoredEffects[];
  /** Whether the denial was recorded in the transaction of the changes that the refused request keeps. */
  isDenialRecorded?: boolean;
  /** The fault that a rule of a sandbox injected into the request. */
  injected: InjectedFault | undefined;
}

/** A guess at a one-time code, charged before the code is compared. */
export interface Guess {
  /** Refunds the charge unless the code was wrong. `error`: the refusal of the request, if it was refused. */
  settle(error: unknown): void;
}

/** A fault in one request. */
interface InjectedFault {
  readonly why: Why;
  /** Whether the fault is the reason why the client gets no regular response. */
  readonly isOutcome: boolean;
  /** Whether the client gets no response. */
  readonly isCut?: boolean;
  /** Sends the response. Undefined: it is sent as usual. */
  readonly write?: WriteResponse;
}

/** Sends a response. `text` is undefined without a body. */
export type WriteResponse = (
  response: ServerResponse,
  head: { readonly status: number; readonly headers: Record<string, string | number> },
  text: string | undefined,
) => void;

/** The response. `text` is sent as is, `body` is serialized. Without either, the body is empty. */
export interface Answer {
  readonly status: number;
  /** The media type of a `text` that is a file; undefined for JSON. */
  readonly fileType?: string;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Handles the valid requests of one operation. openapi-backend passes its own context first. */
type OperationHandler = (context: unknown, state: RequestState) => Promise<Answer>;

/** Handlers by the id of their operation. */
export type OperationHandlers = Readonly<Record<string, OperationHandler>>;

/** The operation of a matched request. */
export function operationOf(state: RequestState): Operation {
  if (state.route === undefined) throw new Error(`request ${state.id} was not matched to an operation`);
  return state.route.operation;
}
