import { setTimeout as pause } from 'node:timers/promises';
import type { SandboxEvent, SandboxEvents } from '../sandbox/generated/schemas.ts';
import { type SandboxClient, SandboxUnavailableError } from './sandbox-client.ts';

export type { SandboxEvent };

/** Selects events of a sandbox. */
export interface EventQuery {
  /** Types and patterns of types; all types by default. */
  readonly types?: readonly string[] | undefined;
  readonly appId?: string | undefined;
  /** Conditions `path=value`; an event must satisfy all of them. */
  readonly where?: readonly string[] | undefined;
}

/** Callbacks while following events. */
export interface FeedObserver {
  /** Called once the starting position is fixed: later events are not missed. */
  onStart(): void;
  /** The sandbox cannot be reached any more. */
  onDisconnect(error: SandboxUnavailableError): void;
  onReconnect(): void;
  /** The sandbox was reset or restarted with an empty event log. */
  onReset(): void;
}

const WAIT_MS = 25_000;
const RETRY_MS = 500;

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

/**
 * Yields events after a position of the log, in order, until `signal` is aborted. Reconnects when the sandbox becomes
 * unavailable; throws when it is unavailable at the start.
 */
export async function* followFeed(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
  { signal, observer }: { readonly signal: AbortSignal; readonly observer: FeedObserver },
): AsyncGenerator<SandboxEvent> {
  try {
    let page = await fetchEvents(client, { ...query, after, waitMs: 0 }, signal);
    observer.onStart();
    let isDisconnected = false;
    while (!signal.aborted) {
      if (page.began_anew) observer.onReset();
      yield* page.data;
      const { cursor } = page;
      for (;;) {
        try {
          const waitMs = isDisconnected ? 0 : WAIT_MS;
          page = await fetchEvents(client, { ...query, after: cursor, waitMs }, signal);
          if (isDisconnected) observer.onReconnect();
          isDisconnected = false;
          break;
        } catch (error) {
          if (!(error instanceof SandboxUnavailableError)) throw error;
          if (!isDisconnected) observer.onDisconnect(error);
          isDisconnected = true;
          await pause(RETRY_MS, undefined, { signal });
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Yields the existing events after a position of the log, then ends. */
export async function* listFeed(
  client: SandboxClient,
  { after, ...query }: EventQuery & { readonly after: string },
): AsyncGenerator<SandboxEvent> {
  for (let position = after; ; ) {
    const { data, cursor } = await fetchEvents(client, { ...query, after: position });
    if (data.length === 0) return;
    yield* data;
    position = cursor;
  }
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
