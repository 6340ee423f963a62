import { collectDefaultMetrics, Registry } from 'prom-client';

/** What prom-client reads of this process: event loop, memory, garbage collection, CPU time, handles. */
export function nodeMetrics(): { text(): Promise<string>; readonly contentType: string } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return { text: () => registry.metrics(), contentType: registry.contentType };
}
