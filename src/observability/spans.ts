import { channel, tracingChannel } from 'node:diagnostics_channel';

/** A timed step of a request. Attributes are never secrets, bodies or ids of customers' objects. */
export interface SpanMessage {
  readonly name: string;
  /** `client` means a call of another system. */
  readonly kind: 'internal' | 'client';
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  /** Starts a trace if no request is being handled. */
  readonly isRoot?: boolean;
  readonly isSync?: boolean;
}

// Channels of node:diagnostics_channel: without a subscriber, a span costs one comparison.
const spans = tracingChannel<SpanMessage, SpanMessage>('custos:span');
const outgoing = channel('custos:outgoing');

/** Runs work as a span of the current request. */
export function inSpan<Arguments extends unknown[], T>(
  message: SpanMessage,
  work: (...args: Arguments) => Promise<T>,
  ...args: Arguments
): Promise<T> {
  return spans.start.hasSubscribers ? spans.tracePromise(work, message, undefined, ...args) : work(...args);
}

/** Runs synchronous work as a span of the current request. */
export function inSyncSpan<T>(message: SpanMessage, work: () => T): T {
  return spans.start.hasSubscribers ? spans.traceSync(work, { ...message, isSync: true }) : work();
}

/** Returns the headers with which another system continues the trace (W3C Trace Context). Empty without a trace. */
export function outgoingHeaders(): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (outgoing.hasSubscribers) outgoing.publish(headers);
  return headers;
}
