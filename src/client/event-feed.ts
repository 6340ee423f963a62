import { setTimeout as pause } from 'node:timers/promises';
import type { SandboxEvent, SandboxEvents } from '../sandbox/generated/schemas.ts';
import { SandboxAwayError, type SandboxClient } from './sandbox-client.ts';

export type { SandboxEvent };

/** Which events of a sandbox are wanted. */
export interface EventQuery {
  /** Types and patterns of types; none: all. */
  readonly types?: readonly string[] | undefined;
  readonly appId?: string | undefined;
  /** `path=value`, all of which must hold. */
  readonly where?: readonly string[] | undefined;
}

/** Told of what happens to the sandbox while its events are followed. */
export interface FeedObserver {
  /** The place is known: from now on nothing is missed. */
  onStart(): void;
  onAway(error: SandboxAwayError): void;
  onBack(): void;
  onBeganAnew(): void;
}

const WAIT_MS = 25_000;
const RETRY_MS = 500;

/** One page of events. */
export function fetchEvents(
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

/**
 * The events after a place of the log, in order, until `signal` ends it. When the sandbox goes away it is waited for;
 * that there is none at the beginning is an error.
 */
export async function* followFeed(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
  { signal, observer }: { readonly signal: AbortSignal; readonly observer: FeedObserver },
): AsyncGenerator<SandboxEvent> {
  try {
    let page = await fetchEvents(client, { ...query, after, waitMs: 0 }, signal);
    observer.onStart();
    let isAway = false;
    while (!signal.aborted) {
      if (page.began_anew) observer.onBeganAnew();
      yield* page.data;
      const { cursor } = page;
      for (;;) {
        try {
          page = await fetchEvents(client, { ...query, after: cursor, waitMs: isAway ? 0 : WAIT_MS }, signal);
          if (isAway) observer.onBack();
          isAway = false;
          break;
        } catch (error) {
          if (!(error instanceof SandboxAwayError)) throw error;
          if (!isAway) observer.onAway(error);
          isAway = true;
          await pause(RETRY_MS, undefined, { signal });
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** The events so far. */
export async function* listFeed(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
): AsyncGenerator<SandboxEvent> {
  for (let place = after; ; ) {
    const { data, cursor } = await fetchEvents(client, { ...query, after: place });
    if (data.length === 0) return;
    yield* data;
    place = cursor;
  }
}

/** The first event after a place of the log; undefined when none came within `timeoutMs`. */
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
