import type { ErrorCode } from '../generated/errors.ts';

/** A request, as far as faults select by it. */
export interface SelectableRequest {
  /** The `operationId`. */
  readonly operation: string;
  readonly appId: string | undefined;
  /** Path and query as sent. */
  readonly target: string;
  readonly rawBody: Uint8Array;
}

/** What happens to one request. Delays are real time: the timeouts of clients are. */
export type RequestFault = { readonly ruleId: string } & (
  | { readonly effect: 'latency' | 'slow_body'; readonly delayMs: number }
  | { readonly effect: 'cut_before_commit' | 'cut_after_commit' | 'truncated_body' }
  | {
      readonly effect: 'error';
      readonly code: ErrorCode;
      /** As in the example of the document; undefined for an error that it does not document. */
      readonly message: string | undefined;
      readonly data: Readonly<Record<string, unknown>> | undefined;
    }
  | { readonly effect: 'rate_limit'; readonly retryAfterSeconds: number }
);

/** Called for every request that is about to be executed. */
export type FindRequestFault = (request: SelectableRequest) => RequestFault | undefined;
