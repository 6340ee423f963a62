import { associatedTokenAddress } from '../../engine/signing/solana/associated-token.ts';
import type { ChainTransfer, TransferPage, TransferReading } from '../../ports/chains.ts';
import type { Log } from '../../ports/runtime.ts';
import { readInteger, readList, readRecord, readText, refuseAnswer } from './endpoint.ts';
import type { Nodes, Read } from './nodes.ts';
import { type AddressRange, isLeft, nextSignatures } from './solana-signatures.ts';

interface SolanaQuestion {
  readonly commitment: 'confirmed' | 'finalized';
  readonly hash: string;
  readonly address: string;
}

interface Held {
  readonly owner: string;
  readonly before: bigint;
  readonly after: bigint;
}

/** Returns the amount of each asset that an address gained in a transaction. */
async function solanaTransfersIn(
  read: Read,
  { commitment, hash, address }: SolanaQuestion,
): Promise<ChainTransfer[]> {
  const method = 'getTransaction';
  const terms = { commitment, encoding: 'json', maxSupportedTransactionVersion: 0 };
  const answer = readRecord(method, await read(method, hash, terms));
  const meta = readRecord(method, answer.meta);
  if (meta.err !== null && meta.err !== undefined) return [];
  const blockNumber = readInteger(method, answer.slot);
  const common = {
    hash,
    recipient: address,
    blockNumber,
    blockTimestampSeconds: Number(answer.blockTime ?? 0),
    position: `${blockNumber}:${hash}`,
  };
  return [...heldByAsset(answer, meta)].flatMap(([tokenAddress, held]) => {
    const own = held.filter(({ owner }) => owner === address);
    const rawAmount = own.reduce((sum, { before, after }) => sum + after - before, 0n);
    if (rawAmount <= 0n) return [];
    const sender = senderOf(held, address);
    return [{ ...common, sender, tokenAddress, rawAmount, key: `${hash}:${tokenAddress ?? 'native'}` }];
  });
}

/**
 * Returns the sender of a transfer.
 *
 * CHOICE: the sender is the account that lost the largest amount of the asset. For a minted token, it is the recipient.
 */
function senderOf(held: readonly Held[], recipient: string): string {
  let sender = { owner: recipient, lost: 0n };
  for (const { owner, before, after } of held) {
    if (owner !== recipient && before - after > sender.lost) sender = { owner, lost: before - after };
  }
  return sender.owner;
}

/** Balances before and after a transaction, by mint; null is the native asset. */
function heldByAsset(
  answer: Record<string, unknown>,
  meta: Record<string, unknown>,
): ReadonlyMap<string | null, readonly Held[]> {
  const method = 'getTransaction';
  const { message } = readRecord(method, answer.transaction);
  const loaded = meta.loadedAddresses === undefined ? {} : readRecord(method, meta.loadedAddresses);
  const keys = [
    ...readList(method, readRecord(method, message).accountKeys),
    ...readList(method, loaded.writable ?? []),
    ...readList(method, loaded.readonly ?? []),
  ].map((key) => readText(method, key));
  const [before, after] = [meta.preBalances, meta.postBalances].map((balances) =>
    readList(method, balances).map((balance) => readInteger(method, balance)),
  );
  if (before!.length !== keys.length || after!.length !== keys.length) refuseAnswer(method);
  const held = new Map<string | null, Held[]>([
    [null, keys.map((owner, index) => ({ owner, before: before![index]!, after: after![index]! }))],
  ]);
  for (const [side, balances] of [
    ['before', meta.preTokenBalances],
    ['after', meta.postTokenBalances],
  ] as const) {
    for (const item of readList(method, balances ?? [])) {
      const { mint, owner, uiTokenAmount } = readRecord(method, item);
      const amount = readText(method, readRecord(method, uiTokenAmount).amount);
      if (!/^\d{1,20}$/.test(amount)) refuseAnswer(method);
      const entry = { owner: readText(method, owner), before: 0n, after: 0n, [side]: BigInt(amount) };
      const key = readText(method, mint);
      held.set(key, [...(held.get(key) ?? []), entry]);
    }
  }
  return held;
}

/**
 * CHOICE: the maximum number of addresses in one page, and so per second. Solana has no list of a block's transfers
 * that is small enough to read. A round over all addresses takes as many seconds as it has pages.
 */
const PAGE_ADDRESSES = 20;
/** The number of addresses that are queried in parallel. */
const AT_ONCE = 5;
/** CHOICE: the maximum number of transactions of one address that one page reads. The next pages read the others. */
const MAX_TRANSACTIONS = 25;
/** The number of addresses with more transactions than that, which one page continues to read. */
const UNFINISHED_AT_ONCE = 5;
/** CHOICE: while this many addresses are unfinished, no other address is started, so that the position stays small. */
const MAX_UNFINISHED = 100;

export interface SolanaTransfersOptions {
  readonly nodes: Nodes;
  readonly caip2: string;
  readonly log: Log;
  readonly commitment: 'confirmed' | 'finalized';
  /** The mints of the tokens whose accounts are watched. */
  readonly namedTokens: readonly string[];
}

/** A round reads the transactions of every watched address after slot `from`, up to slot `to`. */
interface Round {
  readonly from: number;
  readonly to: number;
  /** The last address that was read. Undefined after all addresses were read. */
  readonly address: string | undefined;
  readonly isEnded: boolean;
  /** The addresses with unread transactions, the longest-waiting first. */
  readonly unfinished?: readonly Unfinished[];
}

interface Unfinished extends AddressRange {
  /** The slot up to which the address has been read once no range is left. */
  readonly top: number;
  /** The end of the latest round that has passed this address. The address must be read up to this slot as well. */
  readonly next?: number;
}

/**
 * Reads the transfers to watched addresses, in rounds over all addresses. It reads the signatures of each address and
 * of its associated token accounts for the named tokens. A transfer of an unnamed token is found when the transaction
 * names the address itself, as the transaction that creates its token account does. All nodes that respond must
 * agree.
 *
 * The work of one page is limited. An address with many transactions stays unfinished, and later pages continue it
 * beside the others. Nothing is skipped, however many transactions name an address.
 *
 * CHOICE: reading starts at the current slot of the first reading.
 */
export async function solanaTransfersAfter(
  options: SolanaTransfersOptions,
  reading: TransferReading,
): Promise<TransferPage> {
  const round = await currentRound(options, reading.after);
  const { begun, waiting, ...moved } = await nextAddresses(round, reading);
  const first = waiting.slice(0, UNFINISHED_AT_ONCE);
  const watched = first.length === 0 ? new Set<string>() : await reading.watched.among(first.map(addressOf));
  const asked = [...first.filter(({ address }) => watched.has(address)), ...begun];
  const { outcomes, failures } = await readRanges(options, asked);
  // Nothing could be read. If other addresses wait, they are next. If not, all are tried again.
  const isOnlyWaiting = begun.length === 0 && waiting.length > first.length;
  if (failures.length > 0 && failures.length === asked.length && !isOnlyWaiting) throw failures[0];
  const unfinished = [...waiting.slice(UNFINISHED_AT_ONCE), ...outcomes.flatMap(({ left }) => left ?? [])];
  const position = writeRound({ ...round, ...moved, unfinished });
  return { transfers: outcomes.flatMap(({ transfers }) => transfers), position, hasMore: false };
}

const addressOf = ({ address }: AddressRange): string => address;

/** Returns the current round, or the next one, which begins at the end of the last one. */
async function currentRound(options: SolanaTransfersOptions, position: string | undefined): Promise<Round> {
  const round = position === undefined ? undefined : readRound(position);
  if (round !== undefined && !round.isEnded) return round;
  const slot = await lowestSlot(options);
  if (round === undefined) return { from: slot, to: slot, address: undefined, isEnded: true };
  if (slot <= round.to) return round;
  return { ...round, from: round.to, to: slot, address: undefined, isEnded: false };
}

/** Returns the lowest slot of the nodes, so that all of them have the transactions up to it. */
function lowestSlot({ nodes, commitment }: SolanaTransfersOptions): Promise<number> {
  return nodes.compare({
    what: 'the newest slot',
    ask: async (read) => Number(readInteger('getSlot', await read('getSlot', { commitment }))),
    settle: (slots) => ({ answer: Math.min(...slots) }),
  });
}

/** Returns the next addresses of the round, and the addresses that wait to be continued. */
async function nextAddresses(round: Round, { watched }: TransferReading) {
  const { from, to, unfinished = [] } = round;
  const unchanged = { address: round.address, isEnded: round.isEnded, begun: [], waiting: unfinished };
  if (round.isEnded || unfinished.length > MAX_UNFINISHED - PAGE_ADDRESSES) return unchanged;
  const addresses = await watched.nextOnSolana(round.address, PAGE_ADDRESSES);
  const turn = new Set(addresses);
  const waiting = unfinished.map((each) => (turn.has(each.address) ? { ...each, next: to } : each));
  for (const { address } of unfinished) turn.delete(address);
  return {
    address: addresses.at(-1) ?? round.address,
    isEnded: addresses.length < PAGE_ADDRESSES,
    begun: [...turn].map((address): Unfinished => ({ address, from, to, top: to })),
    waiting,
  };
}

interface Outcome {
  readonly transfers: readonly ChainTransfer[];
  /** What must still be read for the address. Undefined when the address is finished. */
  readonly left: Unfinished | undefined;
}

/**
 * Continues to read each range. A range that cannot be read, for example because the nodes disagree about it, is left
 * for later and does not stop the others.
 */
async function readRanges(options: SolanaTransfersOptions, ranges: readonly Unfinished[]) {
  const { caip2, log } = options;
  const outcomes: Outcome[] = [];
  const failures: unknown[] = [];
  for (let start = 0; start < ranges.length; start += AT_ONCE) {
    const some = ranges.slice(start, start + AT_ONCE);
    const settled = await Promise.allSettled(some.map((range) => readRange(options, range)));
    for (const [index, each] of settled.entries()) {
      if (each.status === 'fulfilled') outcomes.push(each.value);
      else {
        const range = some[index]!;
        failures.push(each.reason);
        outcomes.push({ transfers: [], left: range });
        log.warn(
          { err: each.reason, caip2, address: range.address },
          'failed to read an address; will retry',
        );
      }
    }
  }
  return { outcomes, failures };
}

interface Reading {
  readonly transfers: readonly ChainTransfer[];
  readonly rest: AddressRange;
}

async function readRange(options: SolanaTransfersOptions, unfinished: Unfinished): Promise<Outcome> {
  const { nodes, commitment, namedTokens } = options;
  const { top, next, ...range } = unfinished;
  const { address } = range;
  const accounts = [address, ...namedTokens.map((mint) => associatedTokenAddress(address, mint))];
  const { transfers, rest } = await nodes.compare<Reading>({
    what: `the transactions of \`${address}\``,
    async ask(read) {
      const question = { accounts, range, commitment, limit: MAX_TRANSACTIONS };
      const signatures = await nextSignatures(read, question);
      const found: ChainTransfer[] = [];
      for (const hash of signatures.hashes) {
        found.push(...(await solanaTransfersIn(read, { commitment, hash, address })));
      }
      return { transfers: found.sort(inOrder), rest: signatures.rest };
    },
    settle: settleReadings,
  });
  if (rest.to > rest.from) return { transfers, left: { ...rest, top, ...(next !== undefined && { next }) } };
  const isBehind = next !== undefined && next > top;
  return { transfers, left: isBehind ? { address, from: top, to: next, top: next } : undefined };
}

/**
 * Returns the part of the nodes' results that all of them have read. All nodes have the same transactions of a range,
 * but a node may list newer transactions first, so one may have read further than another. Undefined if they differ
 * within that part.
 */
function settleReadings(readings: readonly Reading[]): { readonly answer: Reading } | undefined {
  const [least] = readings.map(({ rest }) => rest).toSorted((a, b) => b.to - a.to || compareDone(a, b));
  const read = readings.map(({ transfers }) =>
    transfers.filter(({ hash, blockNumber }) => !isLeft(least!, { hash, slot: Number(blockNumber) })),
  );
  const texts = read.map((transfers) =>
    JSON.stringify(transfers, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  if (new Set(texts).size !== 1) return undefined;
  return { answer: { transfers: read[0]!, rest: least! } };
}

function compareDone({ done: a = '' }: AddressRange, { done: b = '' }: AddressRange): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Compares transfers by slot and key. The key makes the order unique, because nodes may return the transactions of one
 * slot in any order.
 */
function inOrder(left: ChainTransfer, right: ChainTransfer): number {
  if (left.blockNumber !== right.blockNumber) return left.blockNumber < right.blockNumber ? -1 : 1;
  return left.key < right.key ? -1 : 1;
}

function writeRound(round: Round): string {
  return JSON.stringify(round);
}

function readRound(position: string): Round {
  return JSON.parse(position) as Round;
}
