import { expect, test } from 'vitest';
import { addHeads, addRequestsInFlight, valuesOfDroppedLines } from '../../../src/observability/gauges.ts';
import { createServerMetrics, mergedText } from '../../../src/observability/server-metrics.ts';

/** A worker that has answered `count` requests in 3 ms each. */
async function worker(count: number, headAge: number | undefined) {
  const metrics = createServerMetrics();
  for (let request = 0; request < count; request += 1) metrics.request('getWallet', 200, 3, undefined);
  addRequestsInFlight(metrics.registry, () => count);
  addHeads(metrics.registry, [{ caip2: 'eip155:1', readAge: async () => headAge }]);
  return metrics.registry.getMetricsAsJSON();
}

test('counters, histograms and gauges of workers are added, and what each reads of the same thing is not', async () => {
  const values = await Promise.all([
    worker(2, 12),
    worker(5, 11),
    worker(0, undefined),
    valuesOfDroppedLines(() => 4),
  ]);
  // As they arrive from another process.
  const text = await mergedText(JSON.parse(JSON.stringify(values)));
  const lines = text.split('\n');
  expect(lines).toContain('custos_http_requests_total{operation="getWallet",status="200"} 7');
  expect(lines).toContain('custos_http_request_duration_seconds_count{operation="getWallet",class="2xx"} 7');
  expect(lines).toContain(
    'custos_http_request_duration_seconds_bucket{le="0.0025",operation="getWallet",class="2xx"} 0',
  );
  expect(lines).toContain(
    'custos_http_request_duration_seconds_bucket{le="0.005",operation="getWallet",class="2xx"} 7',
  );
  expect(lines).toContain('custos_http_requests_in_flight 7');
  expect(lines).toContain('custos_log_lines_dropped_total 4');
  expect(lines).toContain('custos_chain_head_age_seconds{chain="eip155:1"} 12');
  // One head for each metric, also of those that prom-client reads.
  const heading = lines.filter((line) => line.startsWith('# TYPE '));
  expect(new Set(heading).size).toBe(heading.length);
  expect(lines.filter((line) => line.startsWith('process_cpu_seconds_total '))).toHaveLength(1);
});
