import type { SandboxEvent, SandboxEvents } from '../../sandbox/generated/schemas.ts';

const MAX_EVENTS = 10_000;
const RETRY_MS = 1000;

/**
 * Appends the events of the next page. If the log began anew, they replace the earlier events. Keeps at most 10,000
 * events.
 */
export function appendEvents(
  kept: readonly SandboxEvent[],
  { data, began_anew: isNewLog }: Pick<SandboxEvents, 'data' | 'began_anew'>,
): readonly SandboxEvent[] {
  return [...(isNewLog ? [] : kept), ...data].slice(-MAX_EVENTS);
}

/** How many of the newest events are read again until their deliveries have ended. */
const MAX_UNSETTLED = 100;

/**
 * Returns the position after which the newest events must be read again because some of their deliveries have not
 * ended. Returns undefined if all have ended.
 */
export function unsettledAfter(events: readonly SandboxEvent[]): string | undefined {
  const newest = events.slice(-MAX_UNSETTLED);
  const first = newest.findIndex(
    ({ deliveries }) => deliveries === null || deliveries.some(({ status }) => status === 'pending'),
  );
  if (first === -1) return undefined;
  const before = events[events.length - newest.length + first - 1];
  return before?.id ?? 'start';
}

/** Replaces the events that were read again by their current state. */
export function withRenewed(
  events: readonly SandboxEvent[],
  renewed: readonly SandboxEvent[],
): readonly SandboxEvent[] {
  const byId = new Map(renewed.map((event) => [event.id, event]));
  return events.map((event) => byId.get(event.id) ?? event);
}

/** Returns the events whose type, id, payload or names contain `text`, newest first. */
export function filterEvents(events: readonly SandboxEvent[], text: string): SandboxEvent[] {
  const wanted = text.trim().toLowerCase();
  return events
    .filter(
      ({ id, type, payload, subject, wallet, user }) =>
        wanted === '' ||
        `${type} ${id} ${subject?.name ?? ''} ${wallet?.name ?? ''} ${user?.name ?? ''} ${JSON.stringify(payload)}`
          .toLowerCase()
          .includes(wanted),
    )
    .reverse();
}

interface Feed {
  readonly signal: AbortSignal;
  readonly read: (after: string) => Promise<SandboxEvents>;
  readonly add: (page: SandboxEvents) => void;
  readonly fail: (message: string) => void;
}

/** Reads events as they are recorded, until `signal` is aborted. After a failure, reads all events again. */
export async function eventFeed({ signal, read, add, fail }: Feed): Promise<void> {
  let cursor = 'start';
  while (!signal.aborted) {
    try {
      const isFirst = cursor === 'start';
      const page = await read(cursor);
      add(isFirst ? { ...page, began_anew: true } : page);
      cursor = page.cursor;
    } catch (error) {
      if (signal.aborted) return;
      fail((error as Error).message);
      cursor = 'start';
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
