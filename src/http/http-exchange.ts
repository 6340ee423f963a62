import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AuthenticatedApp, RequestProof } from '../operation-context.ts';
import type { Operation } from './operation.ts';

/** The operation that a path and method name, and the decoded path parameters. */
export interface Route {
  readonly operation: Operation;
  readonly params: Record<string, string>;
}

/** One request and what the pipeline has learnt of it so far. Each step reads what the steps before it wrote. */
export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Sent as `x-request-id`, logged, and named by every 500. */
  readonly id: string;
  readonly method: string;
  /** Path and query exactly as sent. */
  readonly target: string;
  /** The path alone, as sent. */
  readonly path: string;
  /** Header names in the contract's words, whatever the client's brand. */
  readonly headers: IncomingHttpHeaders;
  /** `clock.now()` on arrival, Unix ms. */
  readonly nowMs: number;
  readonly remoteAddress: string;
  rawBody: Buffer;
  route: Route | undefined;
  /** Undefined until the credentials check, and after it where the request needs no app and names none. */
  app: AuthenticatedApp | undefined;
  /** The user whose access token stood in for the app's secret. */
  userId: string | undefined;
  query: Record<string, unknown>;
  /** The parsed body in the contract's words; undefined where the operation has none. */
  body: unknown;
  proof: RequestProof | undefined;
}

/** What goes back: `text` is sent as it is, `body` is serialised, neither means no body. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The last step of the pipeline: one validated request to one answer. */
export type RunOperation = (exchange: HttpExchange) => Promise<Answer>;

/** The operation of an exchange that has been matched. */
export function operationOf(exchange: HttpExchange): Operation {
  if (exchange.route === undefined) throw new Error(`request ${exchange.id} was not matched to an operation`);
  return exchange.route.operation;
}
