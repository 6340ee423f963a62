import { invalidQuery, notFound } from '../../errors.ts';
import type { AnsweredRequest } from '../../ports/requests.ts';
import type { ControlContext, ControlInput } from '../control-plane.ts';
import type { RecordedRequests } from '../generated/schemas.ts';
import type { RequestLog } from './request-log.ts';
import { namesWallet, requestSummaries } from './request-view.ts';

type Query = ControlInput<'listRequests'>['query'];

/** Criteria that select requests in the log. */
export type RequestFilter = Pick<Query, 'operation' | 'status' | 'code' | 'wallet'>;

/** A position in the log: the log's name, and the sequence number of the request before the position. */
interface Position {
  readonly log: string;
  readonly sequence: number;
}

const DEFAULT_LIMIT = 100;

/**
 * Returns requests after a position in the log. If there are none, waits up to `wait_ms` for the next request.
 *
 * @throws ApiError not_found for a request id that is not in the log.
 */
export async function followRequests(
  query: Query,
  { log, read, signal }: { readonly log: RequestLog } & Pick<ControlContext, 'read' | 'signal'>,
): Promise<RecordedRequests> {
  const matches = filterOf(query);
  const limit = query.limit ?? DEFAULT_LIMIT;
  const untilMs = performance.now() + (query.wait_ms ?? 0);
  let position = positionOf(query.after ?? 'start', log);
  let wasEmptied = false;
  let skipped = 0;
  for (;;) {
    if (position.log !== log.name()) {
      position = { log: log.name(), sequence: 0 };
      wasEmptied = true;
    }
    const { oldest, newest } = log.range();
    if (position.sequence > newest) throw invalidQuery('after', 'expected a position in the log');
    skipped += Math.max(0, oldest - 1 - position.sequence);
    const found = scan(log, { from: Math.max(position.sequence + 1, oldest), matches, limit });
    position = { log: log.name(), sequence: found.sequence };
    const leftMs = untilMs - performance.now();
    if (found.data.length > 0 || wasEmptied || leftMs <= 0 || signal.aborted) {
      return {
        data: await requestSummaries(found.data, { log, read }),
        cursor: `${position.log}.${position.sequence}`,
        began_anew: wasEmptied,
        skipped,
      };
    }
    await log.next(leftMs, signal);
  }
}

/** Returns the matching requests after a sequence number, and the sequence number of the last request that was read. */
function scan(
  log: RequestLog,
  { from, matches, limit }: { from: number; matches: (answered: AnsweredRequest) => boolean; limit: number },
) {
  const { newest } = log.range();
  const data: AnsweredRequest[] = [];
  for (let sequence = from; sequence <= newest; sequence += 1) {
    const answered = log.at(sequence)!;
    if (matches(answered)) data.push(answered);
    if (data.length === limit) return { data, sequence };
  }
  return { data, sequence: newest };
}

/**
 * Returns the latest matching requests after a position, oldest first.
 *
 * @throws ApiError not_found for a request id that is not in the log.
 */
export function latestRequests(
  log: RequestLog,
  { after = 'start', ...filter }: RequestFilter & Pick<Query, 'after'>,
  limit: number,
): AnsweredRequest[] {
  const matches = filterOf(filter);
  const first = firstAfter(log, after);
  const found: AnsweredRequest[] = [];
  for (let sequence = log.range().newest; sequence >= first && found.length < limit; sequence -= 1) {
    const answered = log.at(sequence)!;
    if (matches(answered)) found.push(answered);
  }
  return found.reverse();
}

/**
 * Returns the sequence number of the first stored request after a position. A position in a log that was emptied
 * since then is before all requests.
 */
export function firstAfter(log: RequestLog, after: string): number {
  const position = positionOf(after, log);
  const { oldest } = log.range();
  return position.log === log.name() ? Math.max(oldest, position.sequence + 1) : oldest;
}

function filterOf({
  operation,
  status,
  code,
  wallet,
}: RequestFilter): (answered: AnsweredRequest) => boolean {
  const operations = operation === undefined ? undefined : new Set(operation);
  return (answered) =>
    (operations === undefined || operations.has(answered.operation ?? '')) &&
    (status === undefined || hasStatus(answered, status)) &&
    (code === undefined || answered.code === code) &&
    (wallet === undefined || namesWallet(answered, wallet));
}

/** Returns whether the status of a request matches a pattern such as `404`, `4xx`, `0` or `failed`. */
function hasStatus({ status, why }: AnsweredRequest, pattern: string): boolean {
  if (pattern === 'failed') return status === 0 || status >= 400 || why?.evidence.effect === 'truncated_body';
  return pattern.endsWith('xx') ? String(status)[0] === pattern[0] : String(status) === pattern;
}

function positionOf(after: string, log: RequestLog): Position {
  if (after === 'start') return { log: log.name(), sequence: log.range().oldest - 1 };
  if (after === 'now') return { log: log.name(), sequence: log.range().newest };
  if (!after.includes('.')) {
    const found = log.find(after);
    if (found === undefined) throw notFound('Request');
    return { log: log.name(), sequence: found.sequence };
  }
  const [name = '', sequence] = after.split('.');
  return { log: name, sequence: Number(sequence) };
}
