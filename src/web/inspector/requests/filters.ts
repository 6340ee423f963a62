import type { HttpArchive, RecordedRequest } from '../../../sandbox/generated/schemas.ts';

/** The criteria that select requests. An empty criterion matches everything. */
export interface Filters {
  /** A part of the operation's name, the method, the path, or the name of the subject or the user. */
  readonly text: string;
  /** A status such as `404`, or `4xx` for all statuses from 400 to 499. */
  readonly status: string;
  /** A part of the error code. */
  readonly code: string;
  /** A part of the wallet's id, name or address, or of the wallet that the path names. */
  readonly wallet: string;
  /** The interval in which the request was received, in Unix milliseconds of the machine's clock, as text. */
  readonly from: string;
  readonly until: string;
}

/** Reads the filters from the query of the page's address. */
export function filtersIn(query: Readonly<Record<string, string>>): Filters {
  const { text = '', status = '', code = '', wallet = '', from = '', until = '' } = query;
  return { text, status, code, wallet, from, until };
}

/** Returns the requests that match all filters, newest first. */
export function filterRequests(requests: readonly RecordedRequest[], filters: Filters): RecordedRequest[] {
  const text = filters.text.trim().toLowerCase();
  const code = filters.code.trim().toLowerCase();
  const wallet = filters.wallet.trim().toLowerCase();
  const isShown = (request: RecordedRequest): boolean =>
    (text === '' || textOf(request).includes(text)) &&
    hasStatus(request.status, filters.status.trim()) &&
    (code === '' || (request.code ?? '').includes(code)) &&
    (wallet === '' || walletTextOf(request).includes(wallet)) &&
    (filters.from === '' || request.machine_received_at_ms >= Number(filters.from)) &&
    (filters.until === '' || request.machine_received_at_ms < Number(filters.until));
  return requests.filter(isShown).reverse();
}

function textOf({ operation, method, path, subject, user }: RecordedRequest): string {
  return `${operation ?? ''} ${method} ${path} ${subject?.name ?? ''} ${user?.name ?? ''}`.toLowerCase();
}

function walletTextOf({ wallet_id: id, wallet, path }: RecordedRequest): string {
  return `${id ?? ''} ${wallet?.id ?? ''} ${wallet?.name ?? ''} ${wallet?.address ?? ''} ${path}`.toLowerCase();
}

function hasStatus(status: number, wanted: string): boolean {
  if (/^[1-5]xx$/.test(wanted)) return Math.floor(status / 100) === Number(wanted[0]);
  return wanted === '' || String(status).startsWith(wanted);
}

/** Returns an HTTP Archive that contains only the selected requests. */
export function archiveOf(archive: HttpArchive, chosen: readonly Pick<RecordedRequest, 'id'>[]): HttpArchive {
  const ids = new Set<unknown>(chosen.map(({ id }) => id));
  const entries = archive.log.entries.filter((entry) =>
    ids.has((entry as { _requestId?: unknown })._requestId),
  );
  return { ...archive, log: { ...archive.log, entries } };
}

/** Adds further requests to the log. Keeps only the newest `most`. */
export function withNewer(
  kept: readonly RecordedRequest[],
  newer: readonly RecordedRequest[],
  most: number,
): readonly RecordedRequest[] {
  return newer.length === 0 ? kept : [...kept, ...newer].slice(-most);
}
