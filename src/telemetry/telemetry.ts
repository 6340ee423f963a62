import type { ServerMetrics } from '../metrics/server-metrics.ts';
import type { Entropy } from '../ports/entropy.ts';
import type { Log } from '../ports/log.ts';
import { createExporter } from './exporter.ts';
import { type EndedSpan, metricsBody, tracesBody } from './otlp.ts';
import { startTracer, type Tracer } from './tracer.ts';

export interface TelemetryOptions {
  /** Base URL of an OTLP/HTTP collector. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of new traces that are recorded. */
  readonly share: number;
  readonly service: string;
  readonly version: string;
  readonly metrics: Pick<ServerMetrics, 'families'>;
  readonly entropy: Entropy;
  readonly log: Log;
}

/** Traces and metrics of one server, sent to a collector. */
export interface Telemetry {
  readonly tracer: Tracer;
  /** Sends what is left. */
  close(): Promise<void>;
}

/** CHOICE: spans wait for at most this long, or until there are this many. */
const SPANS_EVERY_MS = 2_000;
const SPANS_AT_ONCE = 500;
/** CHOICE: while the collector is slow, spans beyond this number are dropped. */
const MOST_SPANS = 5_000;
const METRICS_EVERY_MS = 30_000;

/** Starts to record and to send. Requests never wait for the collector. */
export function startTelemetry(options: TelemetryOptions): Telemetry {
  const { metrics, service, version, log } = options;
  const sender = { service, version, instance: Buffer.from(options.entropy.bytes(8)).toString('hex') };
  const send = createExporter(options);
  const startNs = BigInt(Math.round(performance.timeOrigin)) * 1_000_000n;
  const stopping = new AbortController();
  let waiting: EndedSpan[] = [];
  let sending: Promise<void> = Promise.resolve();
  let isSending = false;
  /** While the collector is slow, newer metrics are not sent beside older ones. */
  let areMetricsSent = false;

  const sendSpans = async (): Promise<void> => {
    isSending = true;
    try {
      while (waiting.length > 0) {
        const batch = waiting.slice(0, SPANS_AT_ONCE);
        waiting = waiting.slice(SPANS_AT_ONCE);
        await send('/v1/traces', tracesBody(sender, batch), stopping.signal);
      }
    } catch (err) {
      log.error({ err }, 'spans could not be sent');
    } finally {
      isSending = false;
    }
  };
  const flush = (): void => {
    if (!isSending && waiting.length > 0) sending = sendSpans();
  };
  const sendMetrics = async (): Promise<void> => {
    const nowNs = BigInt(Math.round(performance.timeOrigin + performance.now())) * 1_000_000n;
    try {
      await send(
        '/v1/metrics',
        metricsBody(sender, await metrics.families(), { startNs, nowNs }),
        stopping.signal,
      );
    } catch (err) {
      log.error({ err }, 'metrics could not be sent');
    }
  };
  const tracer = startTracer({
    ...options,
    onEnd(span) {
      if (waiting.length >= MOST_SPANS) return;
      waiting.push(span);
      if (waiting.length === SPANS_AT_ONCE) flush();
    },
  });
  const spansTimer = setInterval(flush, SPANS_EVERY_MS).unref();
  const metricsTimer = setInterval(() => {
    if (areMetricsSent) return;
    areMetricsSent = true;
    void sendMetrics().finally(() => {
      areMetricsSent = false;
    });
  }, METRICS_EVERY_MS).unref();
  return {
    tracer,
    async close() {
      clearInterval(spansTimer);
      clearInterval(metricsTimer);
      stopping.abort();
      tracer.close();
      await sending;
      await Promise.all([sendSpans(), sendMetrics()]);
    },
  };
}
