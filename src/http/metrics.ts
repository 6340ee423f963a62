import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Observe } from './pipeline.ts';

/** Prometheus metrics, and the two hooks that feed them. */
export interface Metrics {
  readonly observe: Observe;
  /** Reads the number of requests in flight at each scrape. */
  text(): Promise<string>;
  readonly contentType: string;
}

// Seconds. Most operations take less than 5 ms; the upper buckets show a slow database.
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/**
 * Creates the metrics of one server: requests and their durations by operation and status, and Node's own metrics.
 */
export function createMetrics(countInFlight: () => number): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const labelNames = ['operation', 'status'] as const;
  const requests = new Counter({
    name: 'custos_http_requests_total',
    help: 'Requests answered.',
    labelNames,
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'custos_http_request_duration_seconds',
    help: 'Time from the head of a request to its response.',
    labelNames,
    buckets,
    registers: [registry],
  });
  new Gauge({
    name: 'custos_http_requests_in_flight',
    help: 'Requests at work.',
    registers: [registry],
    collect() {
      this.set(countInFlight());
    },
  });
  return {
    observe: (operation, status, durationMs) => {
      const labels = { operation, status };
      requests.inc(labels);
      durations.observe(labels, durationMs / 1000);
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
