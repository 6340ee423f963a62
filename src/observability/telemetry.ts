import { setTimeout as wait } from 'node:timers/promises';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Entropy, Log } from '../ports/runtime.ts';
import { metricProducer } from './metric-data.ts';
import type { ServerMetrics } from './server-metrics.ts';
import { type RequestTracer, startTracer } from './tracer.ts';

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
const MOST_SPANS = 5_000;
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
        maxQueueSize: MOST_SPANS,
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
    log.warn(fields, 'the collector did not accept telemetry, which is dropped');
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
