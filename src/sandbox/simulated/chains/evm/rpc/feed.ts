import { systemEntropy } from '../../../../../adapters/runtime.ts';
import { bytesTo0xHex } from '../../../../../engine/crypto/encoding.ts';
import { invalid, LIMIT_EXCEEDED, type RpcConnection, RpcError } from '../../rpc-calls.ts';
import { makeSubscriptions } from '../../rpc-subscriptions.ts';
import type { EvmParts } from '../parts.ts';
import { latestReceipt, receiptsAfter } from '../receipts.ts';
import { SERVER_ERROR } from './calls.ts';
import { before, type LogView, logsAfter, matches, type Position, readFilter } from './logs.ts';
import { blockView, logViews, transactionBy } from './views.ts';

/**
 * The filters and subscriptions of one chain. Each reports what has changed since its client last polled or was
 * notified. If blocks are replaced, their logs are reported again as removed, and every listener continues after the
 * last block that was kept.
 */

/**
 * CHOICE: the maximum number of filters of a chain. As in geth, a filter expires if it is not polled for five
 * minutes.
 */
const MAX_FILTERS = 10_000;
const FILTER_MS = 5 * 60_000;
/** CHOICE: if the clock moves far, a listener receives only the latest 256 blocks. */
const MAX_BLOCKS = 256;
const MAX_PENDING = 10_000;
/** The maximum number of replacements that are stored for listeners that poll late. */
const MAX_REMOVALS = 256;
const MAX_REMOVED = 10_000;

type Kind = 'logs' | 'newHeads' | 'newPendingTransactions';

interface Listener {
  readonly kind: Kind;
  readonly filter: ReturnType<typeof readFilter>;
  /** Whether whole transactions or blocks are reported instead of only their hashes. */
  readonly isFull: boolean;
  position: Position;
  /** The number of the block after which blocks are still to be reported. */
  block: number;
  /** The row id after which pending transactions are still to be reported. */
  pending: number;
  /** The number of the removal after which removals are still to be reported. */
  removal: number;
  /** Whether more changes are known than one report may have. */
  isBehind: boolean;
}

interface Filter extends Listener {
  readonly request: unknown;
  /** In milliseconds of `performance.now()`. */
  expiresMs: number;
  /** The latest poll. The next one begins after it, so that both never report the same change. */
  polled: Promise<unknown>;
}

/** A block that was replaced, with its logs. */
interface Removal {
  readonly number: number;
  readonly from: number;
  readonly logs: readonly LogView[];
}

/** The filters and subscriptions of one chain. */
export interface Feed {
  addFilter(kind: Kind, request: unknown): string;
  removeFilter(id: unknown): boolean;
  /** Returns the changes since the last call, or since the filter was created. */
  changesOf(id: unknown): Promise<readonly unknown[]>;
  /** Returns the filter object that a filter of logs was created with. */
  requestOf(id: unknown): unknown;
  subscribe(connection: RpcConnection | undefined, kind: unknown, request: unknown): string;
  unsubscribe(connection: RpcConnection | undefined, id: unknown): boolean;
}

export function makeFeed(parts: EvmParts): Feed {
  const { state, blocks, forks, caip2, world } = parts;
  const filters = new Map<string, Filter>();
  const subscriptions = makeSubscriptions<string, Listener>(push, { caip2, log: world.log });
  let removals: Removal[] = [];
  let removalCount = 0;
  let content = world.store.content();
  let seen = '';

  const lastPending = (): number =>
    world.store.first<{ id: number }>(
      'select id from transactions where caip2 = ? order by id desc limit 1',
      caip2,
    )?.id ?? 0;

  function listener(kind: Kind, request: unknown): Listener {
    const { number } = blocks.head();
    return {
      ...{ kind, filter: readFilter(kind === 'logs' ? (request ?? {}) : {}) },
      isFull: kind === 'newPendingTransactions' && request === true,
      position: latestReceipt(state) ?? before(0),
      block: number,
      pending: lastPending(),
      removal: removalCount,
      isBehind: false,
    };
  }

  /** If the content of the store was replaced, deletes all filters and starts the subscriptions again. */
  function forgetOthers(): void {
    if (content === world.store.content()) return;
    content = world.store.content();
    filters.clear();
    removals = [];
    for (const each of subscriptions.contents()) {
      const { filter, isFull } = each;
      Object.assign(each, listener(each.kind, undefined), { filter, isFull });
    }
  }

  async function newsOf(each: Listener): Promise<unknown[]> {
    if (each.kind === 'newPendingTransactions') return pendingSince(each);
    const lost = removals.filter(({ number }) => number > each.removal);
    each.removal = removalCount;
    const removed: LogView[] = [];
    for (const { from, logs } of lost) {
      each.block = Math.min(each.block, from - 1);
      for (const log of logs) {
        if (each.kind === 'logs' && isAtMost(log, each.position) && matches(each.filter, log)) {
          removed.push({ ...log, removed: true });
        }
      }
      if (each.position.block >= from) each.position = before(from);
    }
    if (each.kind === 'newHeads') return headsSince(each);
    const upTo = blocks.head().number;
    const { logs, last, isComplete } = await logsAfter(parts, each.filter, { after: each.position, upTo });
    each.position = last;
    each.isBehind = !isComplete;
    return [...removed, ...logs];
  }

  function headsSince(each: Listener): number[] {
    const { number } = blocks.head();
    const first = Math.max(each.block + 1, number - MAX_BLOCKS + 1);
    each.block = Math.max(each.block, number);
    return Array.from({ length: Math.max(0, number - first + 1) }, (_, at) => first + at);
  }

  function pendingSince(each: Listener): unknown[] {
    const rows = world.store.all<{ id: number; hash: string }>(
      'select id, hash from transactions where caip2 = ? and id > ? order by id limit ?',
      ...[caip2, each.pending, MAX_PENDING],
    );
    each.pending = rows.at(-1)?.id ?? Math.min(each.pending, lastPending());
    each.isBehind = rows.length === MAX_PENDING;
    return rows.map(({ hash }) => (each.isFull ? transactionBy(parts, hash) : hash));
  }

  function filterOf(id: unknown): Filter {
    forgetOthers();
    const found = typeof id === 'string' ? filters.get(id) : undefined;
    if (found === undefined) throw new RpcError(SERVER_ERROR, 'filter not found');
    found.expiresMs = performance.now() + FILTER_MS;
    return found;
  }

  function dropExpired(): void {
    const now = performance.now();
    for (const [id, { expiresMs }] of filters) if (expiresMs <= now) filters.delete(id);
  }

  async function push(): Promise<void> {
    forgetOthers();
    await blocks.catchUp();
    const { block = 0, index = 0 } = latestReceipt(state) ?? {};
    const now = [content, blocks.head().number, block, index, lastPending(), removalCount].join(' ');
    if (now === seen) return;
    seen = now;
    const heads = new Map<number, object | null>();
    await subscriptions.forEach(async (id, each, connection) => {
      for (const result of await newsOf(each)) {
        const shown = each.kind === 'newHeads' ? headIn(heads, result as number) : result;
        const params = { subscription: id, result: shown };
        connection.notify({ jsonrpc: '2.0', method: 'eth_subscription', params });
      }
    });
    // The rest follows with the next push.
    if (subscriptions.contents().some(({ isBehind }) => isBehind)) seen = '';
  }

  /** Returns a block's header, which all subscribers share. Null if there is no such block. */
  function headIn(heads: Map<number, object | null>, number: number): object | null {
    const head = heads.get(number) ?? headOf(parts, number);
    heads.set(number, head);
    return head;
  }

  // When this listener runs, the logs of the replaced blocks are still stored.
  forks.watch((from) => {
    removalCount += 1;
    if (filters.size === 0 && subscriptions.isEmpty()) return;
    const removed = { number: removalCount, from, logs: logsFrom(parts, from) };
    removals = [...removals.slice(1 - MAX_REMOVALS), removed];
  });

  return {
    addFilter(kind, request) {
      forgetOthers();
      const made = listener(kind, request);
      if (filters.size >= MAX_FILTERS) dropExpired();
      if (filters.size >= MAX_FILTERS) {
        throw new RpcError(LIMIT_EXCEEDED, `expected at most ${MAX_FILTERS} filters: uninstall some`);
      }
      const id = newId();
      const expiresMs = performance.now() + FILTER_MS;
      filters.set(id, { ...made, request, expiresMs, polled: Promise.resolve() });
      return id;
    },
    removeFilter: (id) => typeof id === 'string' && filters.delete(id),
    async changesOf(id) {
      const found = filterOf(id);
      const poll = found.polled.then(() => newsOf(found));
      found.polled = poll.then(
        () => undefined,
        () => undefined,
      );
      const news = await poll;
      return found.kind === 'newHeads' ? (news as number[]).map(forks.hashOf) : news;
    },
    requestOf(id) {
      const { kind, request } = filterOf(id);
      if (kind !== 'logs') throw new RpcError(SERVER_ERROR, 'filter not found');
      return request;
    },
    subscribe(connection, kind, request) {
      if (connection === undefined) throw new RpcError(SERVER_ERROR, 'notifications not supported');
      if (kind !== 'logs' && kind !== 'newHeads' && kind !== 'newPendingTransactions') {
        throw invalid(`no "${String(kind)}" subscription in eth namespace`);
      }
      forgetOthers();
      const id = newId();
      subscriptions.add(connection, id, listener(kind, request));
      return id;
    },
    unsubscribe(connection, id) {
      if (connection === undefined || typeof id !== 'string') return false;
      return subscriptions.remove(connection, id);
    },
  };
}

/**
 * Returns the logs of all blocks from this number on, newest first, in the order in which geth reports removed logs.
 */
function logsFrom(parts: EvmParts, from: number): LogView[] {
  const upTo = Number.MAX_SAFE_INTEGER;
  const receipts = receiptsAfter(parts.state, { ...before(from), upTo, limit: MAX_REMOVED });
  return receipts.flatMap((receipt) => logViews(parts, receipt)).reverse();
}

function isAtMost({ blockNumber, transactionIndex }: LogView, { block, index }: Position): boolean {
  const number = Number(blockNumber);
  return number < block || (number === block && Number(transactionIndex) <= index);
}

/** Returns a block's header in the format of subscriptions. Null if there is no such block. */
function headOf(parts: EvmParts, number: number): object | null {
  const view = blockView(parts, number, false);
  if (view === null) return null;
  const { transactions, uncles, size, totalDifficulty, ...header } = view;
  return header;
}

function newId(): string {
  return bytesTo0xHex(systemEntropy.bytes(16));
}
