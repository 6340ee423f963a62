import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import type { SpanMessage } from './spans.ts';

/** The end of a request. */
interface RequestEnd {
  readonly operation: string;
  readonly method: string;
  readonly status: number;
  readonly code: string | undefined;
}

export interface RequestTracer {
  /** Runs the handling of a request as the first span of its trace in this process. */
  request(headers: IncomingHttpHeaders, work: () => Promise<void>): Promise<void>;
  /** Describes the request, whose span ends with `work`. Returns the id of the trace. */
  describe(end: RequestEnd): string | undefined;
  close(): void;
}

const kinds = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT } as const;

/** Records the spans that `spans.ts` announces. */
export function startTracer(tracer: Tracer): RequestTracer {
  const store = new AsyncLocalStorage<Context | undefined>();
  const open = new WeakMap<SpanMessage, Span>();
  const propagator = new W3CTraceContextPropagator();

  const spans = tracingChannel<Context | undefined, SpanMessage>('custos:span');
  spans.start.bindStore(store, (message) => {
    const parent = store.getStore();
    if (parent === undefined && message.isRoot !== true) return undefined;
    const { name, kind, attributes = {} } = message;
    const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, parent ?? ROOT_CONTEXT);
    open.set(message, span);
    return trace.setSpan(parent ?? ROOT_CONTEXT, span);
  });
  const finish = (message: SpanMessage): void => open.get(message)?.end();
  const handlers = {
    start: () => undefined,
    end: (message: SpanMessage) => (message.isSync === true ? finish(message) : undefined),
    asyncStart: () => undefined,
    asyncEnd: finish,
    error: (message: SpanMessage) => void open.get(message)?.setStatus({ code: SpanStatusCode.ERROR }),
  };
  spans.subscribe(handlers);
  const addHeaders = (headers: unknown): void => {
    const context = store.getStore();
    if (context !== undefined) propagator.inject(context, headers, defaultTextMapSetter);
  };
  subscribe('custos:outgoing', addHeaders);

  return {
    async request(headers, work) {
      const parent = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER }, parent);
      try {
        await store.run(trace.setSpan(parent, span), work);
      } finally {
        span.end();
      }
    },
    describe({ operation, method, status, code }) {
      const span = trace.getSpan(store.getStore() ?? ROOT_CONTEXT);
      if (span === undefined) return undefined;
      span.updateName(operation);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.setAttributes({ 'http.request.method': method, 'http.response.status_code': status });
      if (code !== undefined) span.setAttribute('error.type', code);
      return span.spanContext().traceId;
    },
    close() {
      spans.start.unbindStore(store);
      spans.unsubscribe(handlers);
      unsubscribe('custos:outgoing', addHeaders);
    },
  };
}
