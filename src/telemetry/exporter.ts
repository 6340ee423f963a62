import { setTimeout as wait } from 'node:timers/promises';
import type { Entropy } from '../ports/entropy.ts';
import type { Log } from '../ports/log.ts';

export interface ExporterOptions {
  /** Base URL of the collector, without a trailing slash. */
  readonly url: string;
  /** For example credentials of the collector. */
  readonly headers: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly entropy: Entropy;
}

const TIMEOUT_MS = 10_000;
/** The statuses that the OTLP specification lists as retryable. All others mean that the data is bad. */
const retryable = new Set([429, 502, 503, 504]);
/** CHOICE: tries of one batch, with pauses that double from a second; up to 31 seconds in all, and random by half. */
const TRIES = 6;
const FIRST_PAUSE_MS = 1_000;
/** CHOICE: a collector that asks for a longer pause is not waited for. */
const LONGEST_PAUSE_MS = 30_000;
const LOG_EVERY_MS = 60_000;

/**
 * Sends a body to a path of the collector, again where the OTLP specification says so. Never rejects: what the collector
 * does not accept is dropped. After `signal`, it is tried once.
 */
export type Export = (
  path: '/v1/traces' | '/v1/metrics',
  body: object,
  signal?: AbortSignal,
) => Promise<void>;

/** Sends to an OTLP/HTTP collector in JSON. */
export function createExporter({ url, headers, log, entropy }: ExporterOptions): Export {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  const report = (fields: object): void => {
    if (performance.now() - loggedAtMs < LOG_EVERY_MS) return;
    loggedAtMs = performance.now();
    log.warn(fields, 'the collector did not accept telemetry, which is dropped');
  };
  /** Undefined when the collector accepted it. */
  const attempt = async (path: string, text: string): Promise<Refusal | undefined> => {
    try {
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: text,
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (response.ok) return undefined;
      const { status } = response;
      const pauseMs = retryAfterMs(response.headers);
      return { report: { status }, isRetryable: retryable.has(status), pauseMs };
    } catch (error) {
      // The message may contain the URL. A connection that broke may be tried again, too.
      return { report: { reason: (error as Error).name }, isRetryable: true, pauseMs: undefined };
    }
  };
  return async (path, body, signal = new AbortController().signal) => {
    const text = JSON.stringify(body);
    for (let tries = 1; ; tries += 1) {
      const refusal = await attempt(path, text);
      if (refusal === undefined) return;
      const doubled = FIRST_PAUSE_MS * 2 ** (tries - 1);
      const pauseMs = refusal.pauseMs ?? doubled * (0.5 + entropy.bytes(1)[0]! / 512);
      if (!refusal.isRetryable || tries === TRIES || pauseMs > LONGEST_PAUSE_MS || signal.aborted) {
        report(refusal.report);
        return;
      }
      await wait(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
}

interface Refusal {
  readonly report: object;
  readonly isRetryable: boolean;
  /** What the collector asks for. */
  readonly pauseMs: number | undefined;
}

/** Seconds, or a date by the clock of the collector (RFC 9110 section 10.2.3). */
function retryAfterMs(headers: Headers): number | undefined {
  const header = headers.get('retry-after');
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header)
    ? Number(header) * 1_000
    : Date.parse(header) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
