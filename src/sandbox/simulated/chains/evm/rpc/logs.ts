import { termsOf } from '../../chain-terms.ts';
import { invalid, isRecord, LIMIT_EXCEEDED, RpcError } from '../../rpc-calls.ts';
import type { EvmParts } from '../parts.ts';
import { type Receipt, receiptsAfter } from '../receipts.ts';
import { addressOf, hashText, numberOf, SERVER_ERROR } from './calls.ts';
import { logViews } from './views.ts';

/** CHOICE: a response has at most 10,000 logs, and at most 20,000 transactions are searched for them. */
const MAX_LOGS = 10_000;
const MAX_RECEIPTS = 20_000;
const RECEIPTS_PER_READ = 200;
/** CHOICE: a filter has at most 1,000 addresses, and 1,000 topics at each position. */
const MAX_ALTERNATIVES = 1_000;
const SLICE_MS = 10;

export type LogView = ReturnType<typeof logViews>[number];

/** The criteria by which a client selects logs. */
interface LogFilter {
  /** The contracts; undefined for any contract. */
  readonly addresses: ReadonlySet<string> | undefined;
  /** For each position, the topics of which one must match; undefined for any topic. */
  readonly topics: readonly (ReadonlySet<string> | undefined)[];
}

/** A position in the transactions of a chain, directly after the transaction at `index` of the block. */
export interface Position {
  readonly block: number;
  readonly index: number;
}

/**
 * Reads `address` and `topics` of a filter object.
 *
 * @throws RpcError
 */
export function readFilter(filter: unknown): LogFilter {
  if (!isRecord(filter)) throw invalid('invalid argument: expected a filter');
  const { address, topics } = filter;
  const addresses = address == null ? [] : alternatives(address).map(addressOf);
  return {
    // As in geth, an empty list selects all addresses.
    addresses: addresses.length === 0 ? undefined : new Set(addresses),
    topics: topics == null ? [] : topicsOf(topics),
  };
}

function topicsOf(topics: unknown): LogFilter['topics'] {
  if (!Array.isArray(topics) || topics.length > 4) {
    throw invalid('invalid argument: expected at most 4 topics');
  }
  return topics.map((topic) => {
    if (topic === null) return undefined;
    const any = alternatives(topic).map(hashText);
    return any.length === 0 ? undefined : new Set(any);
  });
}

function alternatives(value: unknown): readonly unknown[] {
  const all = Array.isArray(value) ? value : [value];
  if (all.length > MAX_ALTERNATIVES) {
    throw invalid(`invalid argument: expected at most ${MAX_ALTERNATIVES} alternatives`);
  }
  return all;
}

export function matches({ addresses, topics }: LogFilter, log: LogView): boolean {
  if (addresses !== undefined && !addresses.has(log.address)) return false;
  return topics.every((any, at) => any === undefined || any.has(log.topics[at] ?? ''));
}

/**
 * Returns the matching logs after a position, and the position up to which they were searched. The search ends early
 * once there are more than `MAX_LOGS` logs or `MAX_RECEIPTS` transactions; `isComplete` is then false.
 */
export async function logsAfter(
  parts: EvmParts,
  filter: LogFilter,
  { after, upTo }: { readonly after: Position; readonly upTo: number },
): Promise<{ readonly logs: LogView[]; readonly last: Position; readonly isComplete: boolean }> {
  const logs: LogView[] = [];
  let last = after;
  let count = 0;
  let turnMs = performance.now() + SLICE_MS;
  for (;;) {
    const receipts = receiptsAfter(parts.state, { ...last, upTo, limit: RECEIPTS_PER_READ });
    for (const receipt of receipts) {
      for (const log of logViews(parts, receipt)) if (matches(filter, log)) logs.push(log);
      last = positionOf(receipt);
      if (performance.now() < turnMs) continue;
      await new Promise((resolve) => setImmediate(resolve));
      turnMs = performance.now() + SLICE_MS;
    }
    count += receipts.length;
    if (receipts.length < RECEIPTS_PER_READ) return { logs, last, isComplete: true };
    if (logs.length > MAX_LOGS || count >= MAX_RECEIPTS) return { logs, last, isComplete: false };
  }
}

function positionOf({ block, index }: Receipt): Position {
  return { block: block.number, index };
}

/** Returns the logs for a filter object of `eth_getLogs`. */
export async function logsOf(parts: EvmParts, filter: unknown): Promise<readonly LogView[]> {
  const wanted = readFilter(filter);
  const { fromBlock, toBlock, blockHash: hash } = filter as Record<string, unknown>;
  if (hash !== undefined && (fromBlock !== undefined || toBlock !== undefined)) {
    throw invalid('invalid argument: expected either `blockHash` or `fromBlock` and `toBlock`');
  }
  const head = parts.blocks.head().number;
  const [from, to] =
    hash === undefined
      ? [knownBlock(parts, fromBlock), knownBlock(parts, toBlock) ?? head]
      : [knownBlock(parts, { blockHash: hash }), knownBlock(parts, { blockHash: hash })];
  if (from === undefined || to === undefined) {
    if (hash !== undefined) throw new RpcError(SERVER_ERROR, 'unknown block');
    return [];
  }
  if (from > to) throw invalid('invalid block range params');
  const { logs, isComplete } = await logsAfter(parts, wanted, { after: before(from), upTo: to });
  if (logs.length > MAX_LOGS || !isComplete) {
    throw new RpcError(LIMIT_EXCEEDED, `query returned more than ${MAX_LOGS} results: ask for fewer blocks`);
  }
  return logs;
}

/** Returns the position before the first transaction of a block. */
export function before(block: number): Position {
  return { block, index: -1 };
}

/** Returns the number that a block parameter names, or undefined for a block that does not exist. */
export function knownBlock({ caip2, blocks, forks }: EvmParts, block: unknown): number | undefined {
  const head = blocks.head().number;
  if (block === undefined || block === null || block === 'latest' || block === 'pending') return head;
  if (block === 'earliest') return 0;
  if (block === 'safe' || block === 'finalized') {
    return Math.max(0, head - termsOf(caip2).finalityBlocks);
  }
  if (isRecord(block)) {
    if (block.blockNumber !== undefined) return upTo(head, numberOf(block.blockNumber, 'blockNumber'));
    const number = forks.numberOf(hashText(block.blockHash));
    return number === undefined ? undefined : upTo(head, BigInt(number));
  }
  return upTo(head, numberOf(block, 'block'));
}

function upTo(head: number, number: bigint): number | undefined {
  return number > BigInt(head) ? undefined : Number(number);
}
