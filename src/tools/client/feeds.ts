import { setTimeout as pause } from 'node:timers/promises';
import { ConfigError } from '../../config/config.ts';
import type {
  RecordedExchange,
  RecordedRequest,
  RecordedRequests,
  SandboxEvent,
  SandboxEvents,
} from '../../sandbox/generated/schemas.ts';
import { SandboxUnavailableError } from './sandbox-address.ts';
import type { SandboxClient } from './sandbox-client.ts';

/** Callbacks for a function that follows a log of a sandbox. */
export interface FeedObserver {
  /** Called once the starting position is fixed. No later entry is missed. */
  onStart(): void;
  /** Called when the sandbox can no longer be reached. */
  onDisconnect(error: SandboxUnavailableError): void;
  onReconnect(): void;
  /** Called when the log was emptied, or the sandbox restarted with an empty log. */
  onReset(): void;
}

/** A page of a log, oldest entry first. */
interface Page<Entry> {
  readonly data: readonly Entry[];
  readonly cursor: string;
  readonly began_anew: boolean;
}

/** Fetches the page after a position. Waits up to `waitMs` if it is empty. */
type FetchPage<Entry> = (after: string, waitMs: number) => Promise<Page<Entry>>;

const WAIT_MS = 25_000;
const RETRY_MS = 500;

/**
 * Yields the entries of a log after a position, in order, until `signal` is aborted. Reconnects if the sandbox
 * becomes unavailable. Throws if it is unavailable at the start.
 */
async function* followPages<Entry>(
  fetchPage: FetchPage<Entry>,
  after: string,
  { signal, observer }: { readonly signal: AbortSignal; readonly observer: FeedObserver },
): AsyncGenerator<Entry> {
  try {
    let page = await fetchPage(after, 0);
    observer.onStart();
    let isDisconnected = false;
    while (!signal.aborted) {
      if (page.began_anew) observer.onReset();
      yield* page.data;
      const { cursor } = page;
      for (;;) {
        try {
          page = await fetchPage(cursor, isDisconnected ? 0 : WAIT_MS);
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

/** Yields the existing entries after a position of a log, then ends. */
async function* listPages<Entry>(fetchPage: FetchPage<Entry>, after: string): AsyncGenerator<Entry> {
  for (let position = after; ; ) {
    const { data, cursor } = await fetchPage(position, 0);
    if (data.length === 0) return;
    yield* data;
    position = cursor;
  }
}

export type { SandboxEvent };

/** Criteria that select events of a sandbox. */
export interface EventQuery {
  /** Types and patterns of types; all types by default. */
  readonly types?: readonly string[] | undefined;
  readonly appId?: string | undefined;
  /** Conditions `path=value`, all of which an event must satisfy. */
  readonly where?: readonly string[] | undefined;
}

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

/** Waits for the first event after a position of the log. Returns undefined if none occurs within `timeoutMs`. */
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

export type { RecordedExchange, RecordedRequest };

/** Criteria that select requests to a sandbox. */
export interface RequestQuery {
  /** Operation ids; all operations by default. */
  readonly operations?: readonly string[] | undefined;
  /** A status such as `404`, a class such as `4xx`, `0` for cut connections, or `failed`. */
  readonly status?: string | undefined;
  readonly code?: string | undefined;
  readonly wallet?: string | undefined;
}

/** Yields requests after a position of the log, as `followPages` does. */
export function followRequests(
  client: SandboxClient,
  { after, ...query }: RequestQuery & { readonly after: string },
  following: { readonly signal: AbortSignal; readonly observer: FeedObserver },
): AsyncGenerator<RecordedRequest> {
  const fetchPage = (position: string, waitMs: number) =>
    fetchRequests(client, query, { after: position, waitMs, signal: following.signal });
  return followPages(fetchPage, after, following);
}

/** Yields the existing requests after a position of the log, then ends. */
export function listRequests(
  client: SandboxClient,
  { after, ...query }: RequestQuery & { readonly after: string },
): AsyncGenerator<RecordedRequest> {
  return listPages((position) => fetchRequests(client, query, { after: position, waitMs: 0 }), after);
}

/** Returns a request by its id, or by the beginning of its id if only one request of the log has it. */
export async function fetchRequest(client: SandboxClient, id: string): Promise<RecordedExchange> {
  const whole = /^[0-9a-f-]{4,35}$/.test(id) ? await wholeId(client, id) : id;
  return client.call<RecordedExchange>('GET', `/requests/${encodeURIComponent(whole)}`);
}

async function wholeId(client: SandboxClient, beginning: string): Promise<string> {
  const ids: string[] = [];
  for await (const { id } of listRequests(client, { after: 'start' }))
    if (id.startsWith(beginning)) ids.push(id);
  if (ids.length > 1) {
    const shown = ids.slice(-MAX_SHOWN).join(', ');
    throw new ConfigError('ambiguous id:', [`${ids.length} requests begin with \`${beginning}\`: ${shown}`]);
  }
  return ids[0] ?? beginning;
}

const MAX_SHOWN = 5;

/**
 * Returns the id of the last request in the log that was refused or whose connection was cut. Returns undefined if
 * there is none.
 */
export async function fetchLastFailed(client: SandboxClient): Promise<string | undefined> {
  let last: RecordedRequest | undefined;
  for await (const request of listRequests(client, { after: 'start', status: 'failed' })) last = request;
  return last?.id;
}

function fetchRequests(
  client: SandboxClient,
  { operations = [], status, code, wallet }: RequestQuery,
  position: { readonly after: string; readonly waitMs: number; readonly signal?: AbortSignal },
): Promise<RecordedRequests> {
  const { after, waitMs, signal } = position;
  const parameters = new URLSearchParams({ after, wait_ms: String(waitMs) });
  for (const operation of operations) parameters.append('operation', operation);
  if (status !== undefined) parameters.append('status', status);
  if (code !== undefined) parameters.append('code', code);
  if (wallet !== undefined) parameters.append('wallet', wallet);
  return client.call<RecordedRequests>('GET', `/requests?${parameters}`, {
    timeoutMs: waitMs + 15_000,
    ...(signal === undefined ? {} : { signal }),
  });
}
