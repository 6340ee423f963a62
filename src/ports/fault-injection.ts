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

/** A transaction that enters the pool of a simulated chain. */
interface SelectableTransaction {
  readonly caip2: string;
  /** Addresses as the chain notes them; those of EVM chains in lower case. */
  readonly signers: readonly string[];
}

/** What happens to one transaction. Delays follow the clock of the chain. */
export type TransactionFault =
  | { readonly effect: 'revert' | 'drop' }
  | { readonly effect: 'delay'; readonly delayMs: number }
  /** Its block is abandoned `blocks` blocks later. */
  | { readonly effect: 'reorganization'; readonly blocks: number };

/** Called for every transaction that enters a pool. */
export type DrawTransactionFault = (transaction: SelectableTransaction) => TransactionFault | undefined;

/** An event that is delivered to a webhook endpoint. */
export interface SelectableEvent {
  readonly type: string;
  readonly appId: string;
  /** JSON. */
  readonly payload: string;
}

/** How much later a delivery is due, and whether later events of its resource wait for it. */
interface DeliveryDelay {
  readonly delayMs: number;
  readonly keepsOrder: boolean;
}

/** Called for every new delivery. */
export type DelayDelivery = (event: SelectableEvent) => DeliveryDelay | undefined;
