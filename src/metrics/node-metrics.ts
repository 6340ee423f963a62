import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';

/** Plain data that can be sent to another process. */
export type NodeValues = readonly object[];

/** What prom-client reads of this process: event loop, memory, garbage collection, CPU time, handles. */
export function nodeMetrics(): {
  text(): Promise<string>;
  values(): Promise<NodeValues>;
  readonly contentType: string;
} {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    text: () => registry.metrics(),
    values: () => registry.getMetricsAsJSON(),
    contentType: registry.contentType,
  };
}

/** Those of several processes: added, or joined as prom-client says for each. */
export function mergeNodeMetrics(ofProcesses: readonly NodeValues[]): Promise<string> {
  // The type of the parameter is that of prom-client's own cluster support; its documentation says that it takes these.
  return AggregatorRegistry.aggregate(ofProcesses as never).metrics();
}
