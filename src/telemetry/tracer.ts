import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import type { Entropy } from '../ports/entropy.ts';
import type { SpanMessage } from '../spans.ts';
import type { Attributes, EndedSpan } from './otlp.ts';
import { readTraceParent, type TraceContext, traceHeaders } from './trace-context.ts';

export interface TracerOptions {
  readonly entropy: Entropy;
  /** The share of new traces that are recorded, from 0 to 1. Traces that a sender began follow its decision. */
  readonly share: number;
  readonly onEnd: (span: EndedSpan) => void;
}

/** How a request ended. */
interface RequestEnd {
  readonly operation: string;
  readonly method: string;
  readonly status: number;
  readonly code: string | undefined;
}

export interface Tracer {
  /** Runs the handling of a request as the first span of its trace in this process. */
  request(headers: IncomingHttpHeaders, work: () => Promise<void>): Promise<void>;
  /** Describes the request; its span ends with `work`. Result: the id of the trace. */
  describe(end: RequestEnd): string | undefined;
  close(): void;
}

interface OpenSpan extends TraceContext {
  readonly parentId: string | undefined;
  readonly isParentRemote: boolean;
  readonly startNs: bigint;
  readonly kind: EndedSpan['kind'];
  name: string;
  attributes: Attributes;
  hasFailed: boolean;
}

/** Records the spans that `src/spans.ts` announces. */
export function startTracer({ entropy, share, onEnd }: TracerOptions): Tracer {
  const store = new AsyncLocalStorage<OpenSpan | undefined>();
  const messages = new WeakMap<SpanMessage, OpenSpan>();
  const hex = (bytes: number): string => Buffer.from(entropy.bytes(bytes)).toString('hex');

  const open = (
    parent: TraceContext | undefined,
    { name, kind, isParentRemote = false }: Pick<OpenSpan, 'name' | 'kind'> & { isParentRemote?: boolean },
  ): OpenSpan => {
    const traceId = parent?.traceId ?? hex(16);
    return {
      ...{ traceId, spanId: hex(8), parentId: parent?.spanId, isParentRemote, state: parent?.state },
      isSampled: parent?.isSampled ?? isInShare(traceId, share),
      ...{ name, kind, startNs: nowNs(), attributes: {}, hasFailed: false },
    };
  };
  const end = (span: OpenSpan): void => {
    if (span.isSampled) onEnd({ ...span, endNs: nowNs() });
  };

  const spans = tracingChannel<OpenSpan | undefined, SpanMessage>('custos:span');
  spans.start.bindStore(store, (message) => {
    const parent = store.getStore();
    if (parent === undefined && message.isRoot !== true) return undefined;
    const span = open(parent, message);
    span.attributes = message.attributes ?? {};
    messages.set(message, span);
    return span;
  });
  const finish = (message: SpanMessage): void => {
    const span = messages.get(message);
    if (span !== undefined) end(span);
  };
  const handlers = {
    start: () => undefined,
    end: (message: SpanMessage) => (message.isSync === true ? finish(message) : undefined),
    asyncStart: () => undefined,
    asyncEnd: finish,
    error: (message: SpanMessage) => {
      const span = messages.get(message);
      if (span !== undefined) span.hasFailed = true;
    },
  };
  spans.subscribe(handlers);
  const addHeaders = (headers: unknown): void => {
    const span = store.getStore();
    if (span !== undefined) Object.assign(headers as object, traceHeaders(span));
  };
  subscribe('custos:outgoing', addHeaders);

  return {
    async request(headers, work) {
      const parent = readTraceParent(headers.traceparent, headers.tracestate);
      const span = open(parent, { name: 'request', kind: 'server', isParentRemote: parent !== undefined });
      try {
        await store.run(span, work);
      } finally {
        end(span);
      }
    },
    describe({ operation, method, status, code }) {
      const span = store.getStore();
      if (span === undefined) return undefined;
      span.name = operation;
      span.hasFailed = status >= 500;
      span.attributes = {
        'http.request.method': method,
        'http.response.status_code': status,
        ...(code === undefined ? {} : { 'error.type': code }),
      };
      return span.traceId;
    },
    close() {
      spans.start.unbindStore(store);
      spans.unsubscribe(handlers);
      unsubscribe('custos:outgoing', addHeaders);
    },
  };
}

const NS_PER_MS = 1_000_000;

function nowNs(): bigint {
  const { timeOrigin } = performance;
  return BigInt(Math.round((timeOrigin + performance.now()) * 1_000)) * BigInt(NS_PER_MS / 1_000);
}

/** By the trace id, so that every process decides alike (OpenTelemetry, `TraceIdRatioBased`). */
function isInShare(traceId: string, share: number): boolean {
  return Number.parseInt(traceId.slice(-13), 16) < share * 16 ** 13;
}
