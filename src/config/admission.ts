import type { Reader } from './setting.ts';
import type { Settings } from './settings.ts';

/** The limits of the work that a server accepts concurrently. */
export interface AdmissionSettings {
  /** The maximum number of requests in progress. */
  requests: number;
  /** The maximum number of requests of each class in a unit of work. */
  concurrent: { reads: number; writes: number; signing: number };
  /** How long a request may wait during a persistent overload, in ms. */
  delayMs: number;
}

// The number of connections that writes and signing together leave for reads.
const SPARED_CONNECTIONS = 2;

/**
 * Returns the limits of the work that a server accepts concurrently.
 *
 * CHOICE: together, writes and signing have two places fewer than there are connections, and each has half of them. So
 * when all changes hang, for example on a synchronous standby that is unavailable, reads still have two connections.
 *
 * @returns undefined when CUSTOS_MAX_DELAY_MS is 0, which admits everything.
 */
export function admission(
  { value }: Reader<Settings, 'serve'>,
  databasePoolSize: number,
): AdmissionSettings | undefined {
  const changing = databasePoolSize - SPARED_CONNECTIONS;
  const settings = {
    requests: value('maxRequests'),
    concurrent: {
      reads: value('concurrentReads') ?? 2 * databasePoolSize,
      writes: value('concurrentWrites') ?? Math.max(1, Math.ceil(changing / 2)),
      signing: value('concurrentSigning') ?? Math.max(1, Math.floor(changing / 2)),
    },
    delayMs: value('maxDelayMs'),
  };
  return settings.delayMs === 0 ? undefined : settings;
}

/** CHOICE: a sandbox has one thread and one writer. It can respond to this many requests without a noticeable delay. */
export const sandboxAdmission: Readonly<AdmissionSettings> = {
  requests: 2_000,
  concurrent: { reads: 64, writes: 64, signing: 64 },
  delayMs: 20,
};
