import type { RecordedExchange, RecordedRequest, RecordedRequests } from '../sandbox/generated/schemas.ts';
import { type FeedObserver, followPages, listPages } from './follow-pages.ts';
import type { SandboxClient } from './sandbox-client.ts';

export type { RecordedExchange, RecordedRequest };

/** Selects requests of a sandbox. */
export interface RequestQuery {
  /** Operation ids; all by default. */
  readonly operations?: readonly string[] | undefined;
  /** `404` or `4xx`. */
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

/** One request with its response. */
export function fetchRequest(client: SandboxClient, id: string): Promise<RecordedExchange> {
  return client.call<RecordedExchange>('GET', `/requests/${encodeURIComponent(id)}`);
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
