import { type HrTime, ValueType } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { MetricValue, MetricValueWithName, Registry } from 'prom-client';
import type { MetricValues } from './server-metrics.ts';

/** Provides the metrics of a registry to the reader of the SDK. */
export function metricProducer(
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
  // The declared type is an enumeration of numbers, but the values are texts.
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

/** The data points of a histogram, from its cumulative buckets, sums and counts. */
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
