import type { Family, Labels } from '../metrics/families.ts';

// The JSON form of the OpenTelemetry protocol 1.x (opentelemetry-proto, JSON Protobuf encoding with ids in hex).

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** What sends the data. */
export interface Sender {
  readonly service: string;
  readonly version: string;
  /** Distinguishes this process from others of the service, whose counters are their own. */
  readonly instance: string;
}

/** A span that has ended. */
export interface EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  /** The parent is a span of another process. */
  readonly isParentRemote: boolean;
  readonly state: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  /** Unix ns. */
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Attributes;
  readonly hasFailed: boolean;
}

const kinds = { internal: 1, server: 2, client: 3 } as const;
const STATUS_UNSET = 0;
const STATUS_ERROR = 2;
/** Bits 8 and 9 of `flags`: whether it is known that the parent is remote, and whether it is. */
const SAMPLED_PARENT_KNOWN = 0x101;
const PARENT_REMOTE = 0x200;
const CUMULATIVE = 2;

/** The body of `POST /v1/traces`. */
export function tracesBody(sender: Sender, spans: readonly EndedSpan[]): object {
  const scopeSpans = [{ scope: scopeOf(sender), spans: spans.map(spanOf) }];
  return { resourceSpans: [{ resource: resourceOf(sender), scopeSpans }] };
}

function spanOf(span: EndedSpan): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentId === undefined ? {} : { parentSpanId: span.parentId }),
    ...(span.state === undefined ? {} : { traceState: span.state }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: String(span.startNs),
    endTimeUnixNano: String(span.endNs),
    attributes: attributesOf(span.attributes),
    droppedAttributesCount: 0,
    events: [],
    droppedEventsCount: 0,
    status: { code: span.hasFailed ? STATUS_ERROR : STATUS_UNSET },
    links: [],
    droppedLinksCount: 0,
    flags: span.isParentRemote ? SAMPLED_PARENT_KNOWN | PARENT_REMOTE : SAMPLED_PARENT_KNOWN,
  };
}

/** The body of `POST /v1/metrics`. Times: Unix ns, of the start of the process and of the reading. */
export function metricsBody(
  sender: Sender,
  families: readonly Family[],
  times: { readonly startNs: bigint; readonly nowNs: bigint },
): object {
  const time = { startTimeUnixNano: String(times.startNs), timeUnixNano: String(times.nowNs) };
  const scopeMetrics = [
    { scope: scopeOf(sender), metrics: families.map((family) => metricOf(family, time)) },
  ];
  return { resourceMetrics: [{ resource: resourceOf(sender), scopeMetrics }] };
}

function metricOf(family: Family, time: object): object {
  const head = { name: family.name, description: family.help, unit: '' };
  if (family.type === 'histogram') {
    const dataPoints = family.distributions.map(({ labels, counts, sum }) => ({
      attributes: attributesOf(labels),
      bucketCounts: counts,
      explicitBounds: family.bounds,
      count: counts.reduce((all, count) => all + count, 0),
      sum,
      ...time,
    }));
    return { ...head, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } };
  }
  const dataPoints = family.samples.map(({ labels, value }) => ({
    attributes: attributesOf(labels),
    ...time,
    asDouble: value,
  }));
  return family.type === 'gauge'
    ? { ...head, gauge: { dataPoints } }
    : { ...head, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } };
}

function resourceOf({ service, version, instance }: Sender): object {
  const attributes = attributesOf({
    'service.name': service,
    'service.version': version,
    'service.instance.id': instance,
  });
  return { attributes, droppedAttributesCount: 0 };
}

function scopeOf({ version }: Sender): object {
  return { name: 'custos', version };
}

function attributesOf(attributes: Attributes | Labels): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: value } : { doubleValue: value };
}
