import { operationOf, type RequestState } from './request-state.ts';
import type { OpenUnit } from './unit-of-work.ts';

/** How old the data of a list may be. */
const MAX_STALE_MS = 1000;

/** The maximum number of apps for which the time of the last change is kept. */
const MAX_APPS = 10_000;

/** Decides which requests read from a replica of the database. */
export interface ReplicaReads {
  /** Returns the units of work for a request that may read from the replica; undefined for other requests. */
  unitsFor(state: RequestState): OpenUnit | undefined;
  /** Records that an app has changed something. */
  noteChange(state: RequestState): void;
}

interface ReplicaOptions {
  readonly primary: OpenUnit;
  readonly replica: OpenUnit;
  /** The maximum age of the replica's data, ms. */
  readonly lagMs: () => number;
  /** A monotonic clock, ms. */
  readonly now: () => number;
}

/**
 * Returns the rules for reading from the replica.
 *
 * CHOICE: lists (`list…` operations) read from the replica while it is at most a second behind. All other reads go to
 * the primary, and so do the lists of an app that has changed something through this process within two seconds. An app
 * thus sees its own changes, and can immediately read what it has just created. With several processes, a list can be
 * up to a second older than a change that another process has acknowledged.
 */
export function createReplicaReads({ primary, replica, lagMs, now }: ReplicaOptions): ReplicaReads {
  /** When each app last changed something, in the order of the changes. */
  const changedAtMs = new Map<string, number>();
  const hasChanged = (appId: string): boolean =>
    now() - (changedAtMs.get(appId) ?? -Infinity) < 2 * MAX_STALE_MS;
  // A list that also changes something makes that change on the primary.
  const units: OpenUnit = (write) => (write ? primary(write) : replica(write));
  return {
    unitsFor(state) {
      const { method, id } = operationOf(state);
      if (method !== 'GET' || !id.startsWith('list') || state.app === undefined) return undefined;
      return hasChanged(state.app.id) || lagMs() > MAX_STALE_MS ? undefined : units;
    },
    noteChange({ app, route }) {
      if (app === undefined || route?.operation.method === 'GET') return;
      changedAtMs.delete(app.id);
      changedAtMs.set(app.id, now());
      if (changedAtMs.size > MAX_APPS) changedAtMs.delete(changedAtMs.keys().next().value!);
    },
  };
}
