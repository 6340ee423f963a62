import type { Log } from '../ports/log.ts';

export interface ExporterOptions {
  /** Base URL of the collector, without a trailing slash. */
  readonly url: string;
  /** For example credentials of the collector. */
  readonly headers: Readonly<Record<string, string>>;
  readonly log: Log;
}

const TIMEOUT_MS = 10_000;
const LOG_EVERY_MS = 60_000;

/** Sends a body to a path of the collector. Never rejects: what the collector does not accept is dropped. */
export type Export = (path: '/v1/traces' | '/v1/metrics', body: object) => Promise<void>;

/** Sends to an OTLP/HTTP collector in JSON. */
export function createExporter({ url, headers, log }: ExporterOptions): Export {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  const report = (fields: object): void => {
    if (performance.now() - loggedAtMs < LOG_EVERY_MS) return;
    loggedAtMs = performance.now();
    log.warn(fields, 'the collector did not accept telemetry, which is dropped');
  };
  return async (path, body) => {
    try {
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (!response.ok) report({ status: response.status });
    } catch (error) {
      // The message may contain the URL.
      report({ reason: (error as Error).name });
    }
  };
}
