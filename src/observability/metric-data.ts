import { type HrTime, ValueType } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { Family } from './instruments.ts';

/** Gives the metrics of a server to the reader of the SDK. */
export function metricProducer(
  scope: { readonly name: string; readonly version: string },
  resource: Resource,
  families: () => Promise<readonly Family[]>,
): MetricProducer {
  const startTime = hrTimeOf(performance.timeOrigin);
  return {
    async collect() {
      const endTime = hrTimeOf(performance.timeOrigin + performance.now());
      const metrics = (await families()).map((family) => metricOf(family, { startTime, endTime }));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  };
}

function metricOf(
  family: Family,
  times: { readonly startTime: HrTime; readonly endTime: HrTime },
): MetricData {
  const head = {
    descriptor: { name: family.name, description: family.help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (family.type === 'histogram') {
    const dataPoints = family.distributions.map(({ labels, counts, sum }) => ({
      ...times,
      attributes: labels,
      value: {
        buckets: { boundaries: [...family.bounds], counts: [...counts] },
        count: counts.reduce((all, count) => all + count, 0),
        sum,
      },
    }));
    return { ...head, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = family.samples.map(({ labels, value }) => ({ ...times, attributes: labels, value }));
  return family.type === 'gauge'
    ? { ...head, dataPointType: DataPointType.GAUGE, dataPoints }
    : { ...head, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
}

function hrTimeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1_000_000)];
}
