import type { SandboxEvent, SandboxEvents } from '../sandbox/generated/schemas.ts';
import { type FeedObserver, followPages, listPages, WAIT_MS } from './follow-pages.ts';
import type { SandboxClient } from './sandbox-client.ts';

export type { SandboxEvent };

/** Selects events of a sandbox. */
export interface EventQuery {
  /** Types and patterns of types; all types by default. */
  readonly types?: readonly string[] | undefined;
  readonly appId?: string | undefined;
  /** Conditions `path=value`; an event must satisfy all of them. */
  readonly where?: readonly string[] | undefined;
}

/** Fetches one page of events. */
function fetchEvents(
  client: SandboxClient,
  query: EventQuery & { readonly after: string; readonly waitMs?: number; readonly limit?: number },
  signal?: AbortSignal,
): Promise<SandboxEvents> {
  const { after, waitMs = 0, limit = 100, types = [], where = [], appId } = query;
  const parameters = new URLSearchParams({ after, limit: String(limit), wait_ms: String(waitMs) });
  for (const type of types) parameters.append('type', type);
  for (const condition of where) parameters.append('where', condition);
  if (appId !== undefined) parameters.append('app_id', appId);
  return client.call<SandboxEvents>('GET', `/events?${parameters}`, {
    timeoutMs: waitMs + 15_000,
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Yields events after a position of the log, as `followPages` does. */
export function followFeed(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
  following: { readonly signal: AbortSignal; readonly observer: FeedObserver },
): AsyncGenerator<SandboxEvent> {
  const fetchPage = (position: string, waitMs: number) =>
    fetchEvents(client, { ...query, after: position, waitMs }, following.signal);
  return followPages(fetchPage, after, following);
}

/** Yields the existing events after a position of the log, then ends. */
export function listFeed(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
): AsyncGenerator<SandboxEvent> {
  return listPages((position) => fetchEvents(client, { ...query, after: position }), after);
}

/** Waits for the first event after a position of the log; undefined after `timeoutMs`. */
export async function awaitEvent(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
  { timeoutMs, onStart }: { readonly timeoutMs: number; readonly onStart: () => void },
): Promise<SandboxEvent | undefined> {
  const untilMs = performance.now() + timeoutMs;
  let page = await fetchEvents(client, { ...query, after, limit: 1 });
  if (page.data.length === 0) onStart();
  while (page.data.length === 0) {
    const leftMs = Math.round(untilMs - performance.now());
    if (leftMs <= 0) return undefined;
    page = await fetchEvents(client, {
      ...query,
      after: page.cursor,
      limit: 1,
      waitMs: Math.min(leftMs, WAIT_MS),
    });
  }
  return page.data[0];
}
