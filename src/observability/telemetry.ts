import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import {
  type Context,
  DiagLogLevel,
  defaultTextMapGetter,
  defaultTextMapSetter,
  diag,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
  ValueType,
} from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  MeterProvider,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { MetricValue, MetricValueWithName, Registry } from 'prom-client';
import type { Entropy, Log } from '../ports/runtime.ts';
import type { MetricValues, ServerMetrics } from './server-metrics.ts';
import type { SpanMessage } from './spans.ts';

/** Provides the metrics of a registry to the reader of the SDK. */
function metricProducer(
  scope: { readonly name: string; readonly version: string },
  resource: Resource,
  registry: Pick<Registry, 'getMetricsAsJSON'>,
): MetricProducer {
  const startTime = hrTimeOf(performance.timeOrigin);
  return {
    async collect() {
      const endTime = hrTimeOf(performance.timeOrigin + performance.now());
      const values = await registry.getMetricsAsJSON();
      const metrics = values.map((metric) => metricOf(metric, { startTime, endTime }));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  };
}

interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

function metricOf({ name, help, type, values }: MetricValues[number], times: Times): MetricData {
  const head = {
    descriptor: { name, description: help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  // The declared type is an enumeration of numbers, but the values are strings.
  const kind = String(type);
  if (kind === 'histogram') {
    const dataPoints = histogramPoints(values as MetricValueWithName<string>[], times);
    return { ...head, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = values.map(({ labels, value }) => ({
    ...times,
    attributes: attributesOf(labels),
    value,
  }));
  return kind === 'gauge'
    ? { ...head, dataPointType: DataPointType.GAUGE, dataPoints }
    : { ...head, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
}

/** Returns the data points of a histogram, from its cumulative buckets, sums and counts. */
function histogramPoints(
  values: readonly MetricValueWithName<string>[],
  times: Times,
): HistogramMetricData['dataPoints'] {
  const byLabels = Map.groupBy(values, ({ labels: { le, ...labels } }) => JSON.stringify(labels));
  return [...byLabels.values()].map((group) => {
    const find = (suffix: string) =>
      group.find(({ metricName }) => metricName?.endsWith(suffix) === true)!.value;
    const buckets = group.filter(({ metricName }) => metricName?.endsWith('_bucket') === true);
    const { le, ...labels } = buckets[0]!.labels;
    return {
      ...times,
      attributes: attributesOf(labels),
      value: {
        buckets: {
          boundaries: buckets.slice(0, -1).map((bucket) => Number(bucket.labels.le)),
          counts: buckets.map(({ value }, at) => value - (at === 0 ? 0 : buckets[at - 1]!.value)),
        },
        count: find('_count'),
        sum: find('_sum'),
      },
    };
  });
}

function attributesOf(labels: MetricValue<string>['labels']): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}

function hrTimeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1_000_000)];
}

interface RequestEnd {
  readonly operation: string;
  readonly method: string;
  readonly status: number;
  readonly code: string | undefined;
}

interface RequestTracer {
  /** Runs the handling of a request as the first span of its trace in this process. */
  request(headers: IncomingHttpHeaders, work: () => Promise<void>): Promise<void>;
  /** Describes the request, whose span ends with `work`. Returns the id of the trace. */
  describe(end: RequestEnd): string | undefined;
  close(): void;
}

const kinds = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT } as const;

/** Records the spans that `spans.ts` announces. */
function startTracer(tracer: Tracer): RequestTracer {
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

export interface TelemetryOptions {
  /** The base URL of an OTLP/HTTP collector, without a trailing slash. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of new traces that are recorded. */
  readonly share: number;
  readonly service: string;
  readonly compression: 'gzip' | 'none';
  readonly version: string;
  readonly metrics: Pick<ServerMetrics, 'registry'>;
  readonly entropy: Entropy;
  readonly log: Log;
  /** How long `close` waits for the collector, in ms. By default, 5 s. */
  readonly closeMs?: number;
}

/** Traces and metrics of one server, sent to a collector. */
export interface Telemetry {
  readonly tracer: RequestTracer;
  /** Sends the remaining data. */
  close(): Promise<void>;
}

/** CHOICE: spans are sent at this interval, or earlier when this many wait. */
const SPANS_EVERY_MS = 2_000;
const SPANS_AT_ONCE = 500;
/** CHOICE: while the collector is slow, spans beyond this number are dropped. */
const MAX_SPANS = 5_000;
const METRICS_EVERY_MS = 30_000;
/** CHOICE: a stopping server waits this long for the collector. */
const CLOSE_MS = 5_000;
const LOG_EVERY_MS = 60_000;

/**
 * Starts recording and exporting. Requests never wait for the collector. The exporters of the SDK retry as OTLP
 * specifies, and read other settings from the variables `OTEL_EXPORTER_OTLP_*`.
 */
export function startTelemetry(options: TelemetryOptions): Telemetry {
  const { url, service, version, share, metrics, entropy, log, closeMs = CLOSE_MS } = options;
  const report = reportTo(log);
  // Each process has its own counters, so each process is an instance.
  const instance = Buffer.from(entropy.bytes(8)).toString('hex');
  const attributes = {
    'service.name': service,
    'service.version': version,
    'service.instance.id': instance,
  };
  const resource = detectResources({ detectors: [envDetector] }).merge(resourceFromAttributes(attributes));
  const exporterFor = (path: string) => ({
    url: `${url}${path}`,
    headers: { ...options.headers },
    compression: options.compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
  });
  const provider = new TracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(exporterFor('/v1/traces')),
        scheduledDelayMillis: SPANS_EVERY_MS,
        maxExportBatchSize: SPANS_AT_ONCE,
        maxQueueSize: MAX_SPANS,
      }),
    ],
  });
  const scope = { name: 'custos', version };
  const meters = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter(exporterFor('/v1/metrics')),
        metricProducers: [metricProducer(scope, resource, metrics.registry)],
        exportIntervalMillis: METRICS_EVERY_MS,
      }),
    ],
  });
  const tracer = startTracer(provider.getTracer(scope.name, version));
  return {
    tracer,
    async close() {
      tracer.close();
      const sent = [provider.shutdown().catch(report), meters.shutdown().catch(report)];
      await Promise.race([Promise.all(sent), wait(closeMs, undefined, { ref: false })]);
    },
  };
}

/** Logs what the SDK reports, without the messages, because they may contain the URL or the collector's response. */
function reportTo(log: Log): (error: unknown) => void {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  const warn = (fields: object): void => {
    if (performance.now() - loggedAtMs < LOG_EVERY_MS) return;
    loggedAtMs = performance.now();
    log.warn(fields, 'the collector rejected telemetry; it was dropped');
  };
  const report = (error: unknown): void => {
    const { code, name } = error as { readonly code?: unknown; readonly name?: string };
    warn(typeof code === 'number' ? { status: code } : { reason: code ?? name });
  };
  setGlobalErrorHandler(report);
  const ignore = (): void => undefined;
  const dropped = (message: string): void => {
    if (message.startsWith('Dropped')) warn({ reason: 'queue full' });
  };
  diag.setLogger(
    { error: ignore, warn: dropped, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return report;
}
