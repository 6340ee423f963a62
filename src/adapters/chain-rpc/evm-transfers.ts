import { bytesTo0xHex } from '../../engine/crypto/encoding.ts';
import { checksumAddress } from '../../engine/signing/ethereum/signer.ts';
import type {
  ChainTransfer,
  TokenMovement,
  TransactionMovements,
  TransferPage,
  TransferReading,
} from '../../ports/chains.ts';
import type { Log } from '../../ports/runtime.ts';
import { readBytes, readList, readQuantity, readRecord, readText } from './endpoint.ts';
import {
  agreedBlock,
  type BlockTransfer,
  hasSucceeded,
  type ReadBlock,
  readBlock,
  readHeader,
} from './evm-blocks.ts';
import { allEqual, type Nodes, type Read } from './nodes.ts';
import {
  type BlockReader,
  type FinalBlock,
  type SharedBlocks,
  shareBlocks,
  withRecipients,
} from './shared-blocks.ts';

/** The maximum number of blocks in one page. It limits the work of a page after an outage. */
const PAGE_BLOCKS = 16;
/** The number of blocks that are requested in parallel. */
const AT_ONCE = 4;
/**
 * The number of hashes of earlier blocks in the position. They show the last block that is still in the chain after a
 * reorganization.
 */
const KEPT_HASHES = 64;
/** The length of a hash's prefix that is enough to identify a block of one chain. */
const HASH_CHARACTERS = 18;
/** Heads of nodes that are further apart are reported. The lowest head is used. */
const LAGGING_BLOCKS = 64n;

export interface EvmTransfersOptions {
  readonly nodes: Nodes;
  readonly caip2: string;
  readonly log: Log;
  /** The number of blocks after which a transfer is final, including the block that contains it. */
  readonly confirmations: bigint;
  /**
   * Lower-case addresses of the tokens whose transfers are read even in blocks with too many transfers for one
   * response.
   */
  readonly namedTokens: readonly string[];
}

/** A source of transfers. `shared` caches blocks, so that other readers can reuse them; undefined without a cache. */
export interface TransferSource extends EvmTransfersOptions {
  readonly shared: SharedBlocks | undefined;
}

/**
 * Creates a source of transfers.
 *
 * @param cells the number of cells that read the transfers of the chain; undefined to read everything again each time.
 */
export function transferSource(options: EvmTransfersOptions, cells: number | undefined): TransferSource {
  return { ...options, shared: cells === undefined ? undefined : shareBlocks(readerOf(options), cells > 1) };
}

function readerOf(options: EvmTransfersOptions): BlockReader {
  return {
    head: () => lowestHead(options),
    block: async (number) => withRecipients(await blockAt(options, number)),
  };
}

/** The block at which the next page begins. */
interface Cursor {
  /** The last block that was read. It was read completely unless `place` is set. */
  readonly block: bigint;
  /** The last transfer in that block that was returned. */
  readonly place: string | undefined;
  /** Prefixes of the hashes of that block and of the blocks before it. */
  readonly hashes: readonly string[];
}

/**
 * Reads the transfers in final blocks: the native asset that transactions carry, and `Transfer` logs of ERC-20
 * tokens. Each block is read once, whatever the number of watched addresses. All nodes that respond must agree on it.
 *
 * CHOICE: the first reading starts at the block that is final at that time. Native assets that contracts transfer in
 * internal calls are not found, because no method of plain JSON-RPC lists them.
 */
export async function evmTransfersAfter(
  source: TransferSource,
  reading: TransferReading,
): Promise<TransferPage> {
  const { shared, ...options } = source;
  const reader = shared ?? readerOf(options);
  const cursor = readCursor(reading.after);
  const last = (await reader.head()) - options.confirmations + 1n;
  if (!isBehind(cursor, last)) {
    return { transfers: [], position: reading.after, hasMore: false };
  }
  if (cursor === undefined) {
    const { hash } = await headerAt(options, last);
    return {
      transfers: [],
      position: writeCursor({ block: last, place: undefined, hashes: [hash] }),
      hasMore: false,
    };
  }
  return readFrom(source, { reader, cursor, last, reading });
}

/** Returns whether reading from a position may find new transfers. Always true if the head is not shared. */
export async function transfersAwait(
  { shared, confirmations }: TransferSource,
  position: string | undefined,
): Promise<boolean> {
  if (shared === undefined) return true;
  return isBehind(readCursor(position), (await shared.head()) - confirmations + 1n);
}

/** Returns whether there is something to read up to the last final block. */
function isBehind(cursor: Cursor | undefined, last: bigint): boolean {
  return last >= 0n && (cursor === undefined || last > cursor.block || cursor.place !== undefined);
}

interface Range {
  readonly reader: BlockReader;
  readonly cursor: Cursor;
  readonly last: bigint;
  readonly reading: TransferReading;
}

async function readFrom(source: TransferSource, range: Range): Promise<TransferPage> {
  const { reader, cursor, last, reading } = range;
  const transfers: ChainTransfer[] = [];
  let at = cursor;
  const first = cursor.place === undefined ? cursor.block + 1n : cursor.block;
  const end = last < first + BigInt(PAGE_BLOCKS) - 1n ? last : first + BigInt(PAGE_BLOCKS) - 1n;
  for (let from = first; from <= end; from += BigInt(AT_ONCE)) {
    const size = end - from + 1n < AT_ONCE ? Number(end - from + 1n) : AT_ONCE;
    const numbers = Array.from({ length: size }, (_, index) => from + BigInt(index));
    const blocks = await Promise.all(numbers.map((number) => reader.block(number)));
    for (const block of blocks) {
      const isPartial = at.place !== undefined;
      const isSame = isPartial ? short(block.hash) === at.hashes[0] : isNext(at, block);
      if (!isSame) return { transfers, position: writeCursor(await lastCommon(source, at)), hasMore: true };
      const found = await watchedIn(block, at.place, reading.watched);
      const taken = found.slice(0, reading.limit - transfers.length);
      transfers.push(...(await executed(source, block, taken)));
      const hashes = isPartial ? at.hashes : [short(block.hash), ...at.hashes].slice(0, KEPT_HASHES);
      const place = taken.length < found.length ? taken.at(-1)?.place : undefined;
      at = { block: block.number, place, hashes };
      if (place !== undefined) return { transfers, position: writeCursor(at), hasMore: true };
    }
  }
  return { transfers, position: writeCursor(at), hasMore: at.block < last };
}

/** Returns the transfers to watched recipients that follow a place in a block. */
async function watchedIn(
  { transfers, recipients: known }: FinalBlock,
  place: string | undefined,
  watched: TransferReading['watched'],
): Promise<readonly BlockTransfer[]> {
  const rest = transfers.slice(1 + transfers.findIndex((transfer) => transfer.place === place));
  const recipients = new Map(rest.map(({ recipient }) => [recipient, known.get(recipient)!]));
  if (recipients.size === 0) return [];
  const ours = await watched.among([...recipients.values()]);
  return rest.filter(({ recipient }) => ours.has(recipients.get(recipient)!));
}

/** Removes the transfers of reverted transactions, which the block also contains. */
async function executed(
  { nodes }: EvmTransfersOptions,
  block: ReadBlock,
  transfers: readonly BlockTransfer[],
): Promise<readonly ChainTransfer[]> {
  const done: ChainTransfer[] = [];
  for (const transfer of transfers) {
    const isExecuted =
      transfer.token !== null ||
      (await nodes.compare({
        what: `the transaction \`${transfer.hash}\``,
        ask: (read) => hasSucceeded(read, transfer.hash, block.hash),
        settle: allEqual(String),
      }));
    if (isExecuted) done.push(toTransfer(block, transfer));
  }
  return done;
}

function isNext({ block, hashes }: Cursor, next: ReadBlock): boolean {
  return next.number === block + 1n && short(next.parentHash) === hashes[0];
}

/**
 * Finds the last block that is still in the chain, after a reorganization deeper than the confirmations. The position
 * moves back to it. Transfers that the new blocks contain again have the same key.
 */
async function lastCommon(options: TransferSource, { block, place, hashes }: Cursor): Promise<Cursor> {
  let depth = 0;
  for (; depth < hashes.length - 1; depth += 1) {
    const { hash } = await headerAt(options, block - BigInt(depth));
    if (short(hash) === hashes[depth]) break;
  }
  const common = block - BigInt(depth);
  const { caip2, confirmations, log, shared } = options;
  const isKept = (replaced: string, at: number): boolean => {
    const kept = shared?.keptHash(block - BigInt(at));
    return kept !== undefined && short(kept) === replaced;
  };
  // Drop the kept blocks if they were replaced. Another cell may have done so already, and read the new ones. If
  // `depth` is 0, the position's block is still in the chain, so it was the block read after it that was replaced.
  if (depth === 0 || hashes.slice(0, depth).some(isKept)) shared?.drop();
  const { hash } = await headerAt(options, common);
  log[shared?.isFirstReport(hash) === false ? 'debug' : 'error'](
    { caip2, block: String(common), depth, confirmations: Number(confirmations) },
    'fully confirmed blocks were replaced; reading their transfers again',
  );
  return {
    block: common,
    place: depth === 0 ? place : undefined,
    hashes: [short(hash), ...hashes.slice(depth + 1)],
  };
}

/** Returns the lowest head of the nodes, so that all of them have the blocks to read. */
function lowestHead({ nodes, caip2, log }: EvmTransfersOptions): Promise<bigint> {
  return nodes.compare({
    what: 'the newest block',
    ask: async (read) => readQuantity('eth_blockNumber', await read('eth_blockNumber')),
    settle(heads) {
      const sorted = heads.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      const [lowest, highest] = [sorted[0]!, sorted.at(-1)!];
      if (highest - lowest > LAGGING_BLOCKS) {
        log.warn(
          { caip2, lowest: String(lowest), highest: String(highest) },
          'a node is behind the others; deposits wait for it',
        );
      }
      return { answer: lowest };
    },
  });
}

async function blockAt(
  { nodes, caip2, log, namedTokens }: EvmTransfersOptions,
  number: bigint,
): Promise<ReadBlock> {
  const block = await nodes.compare({
    what: `the transfers of block ${number}`,
    ask: (read) => readBlock(read, { number, namedTokens }),
    settle: (blocks) => agreedBlock(blocks, namedTokens),
  });
  if (block.isTooLarge) {
    log.error(
      { caip2, block: String(number) },
      'a block is too large to be read; only deposits of named tokens in it are reported',
    );
  }
  return block;
}

async function headerAt({ nodes }: EvmTransfersOptions, number: bigint): Promise<{ readonly hash: string }> {
  return nodes.compare({
    what: `block ${number}`,
    ask: (read) => readHeader(read, number),
    settle: allEqual(({ hash }) => hash),
  });
}

function toTransfer(
  block: ReadBlock,
  { place, ordinal, hash, sender, recipient, token, rawAmount }: BlockTransfer,
): ChainTransfer {
  return {
    hash,
    sender: checksumAddress(sender.slice(2)),
    recipient: checksumAddress(recipient.slice(2)),
    tokenAddress: token === null ? null : checksumAddress(token.slice(2)),
    rawAmount,
    blockNumber: block.number,
    blockTimestampSeconds: block.timestampSeconds,
    position: `${block.number}:${place}`,
    key: `${hash}:${ordinal}`,
  };
}

function short(hash: string): string {
  return hash.slice(0, HASH_CHARACTERS);
}

function writeCursor({ block, place, hashes }: Cursor): string {
  return JSON.stringify({ block: String(block), place, hashes: hashes.map(short) });
}

function readCursor(position: string | undefined): Cursor | undefined {
  if (position === undefined) return undefined;
  const { block, place, hashes } = readRecord('position', JSON.parse(position));
  return { block: BigInt(block as string), place: place as string | undefined, hashes: hashes as string[] };
}

// keccak256 of the event signatures of ERC-20 and of WETH9, whose token is minted and burned without a `Transfer`.
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const DEPOSIT = '0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c';
const WITHDRAWAL = '0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65';
const ZERO = `0x${'0'.repeat(40)}`;

/**
 * Returns the movements of a transaction, from its logs and its value. Returns undefined while no block includes it, or
 * while the nodes disagree about it.
 */
export async function movementsOf(nodes: Nodes, hash: string): Promise<TransactionMovements | undefined> {
  const answers = await nodes.readAll((read) => readMovements(read, hash));
  const texts = answers.map((answer) =>
    JSON.stringify(answer ?? null, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  return new Set(texts).size === 1 ? answers[0] : undefined;
}

async function readMovements(read: Read, hash: string): Promise<TransactionMovements | undefined> {
  const [receiptAnswer, transactionAnswer] = await Promise.all([
    read('eth_getTransactionReceipt', hash),
    read('eth_getTransactionByHash', hash),
  ]);
  if (receiptAnswer === null || transactionAnswer === null) return undefined;
  const receipt = readRecord('receipt', receiptAnswer);
  const blockNumber = readQuantity('blockNumber', receipt.blockNumber);
  if (readQuantity('status', receipt.status) !== 1n) return { blockNumber, movements: [] };
  const logged = readList('logs', receipt.logs).flatMap((log) => movementOf(readRecord('log', log)) ?? []);
  return {
    blockNumber,
    movements: [...ownValue(readRecord('transaction', transactionAnswer)), ...once(logged)],
  };
}

/** Returns the movement of the native asset that the transaction itself carries. */
function ownValue({ from, to, value }: Record<string, unknown>): TokenMovement[] {
  const rawAmount = readQuantity('value', value);
  if (rawAmount === 0n || to === null) return [];
  return [{ token: null, from: readText('from', from), to: readText('to', to), rawAmount }];
}

interface LoggedMovement extends TokenMovement {
  /** Whether it was read from a WETH9 event. */
  readonly isWrapping: boolean;
}

function movementOf(log: Record<string, unknown>): LoggedMovement | undefined {
  const [event, first, second, ...more] = readList('topics', log.topics).map((topic) =>
    readText('topic', topic),
  );
  const data = readBytes('data', log.data);
  // NFTs have the same event with the id as a fourth topic.
  if (first === undefined || more.length > 0 || data.length !== 32) return undefined;
  const moved = { token: readText('address', log.address), rawAmount: BigInt(bytesTo0xHex(data)) };
  if (event === TRANSFER && second !== undefined) {
    return { ...moved, from: addressOf(first), to: addressOf(second), isWrapping: false };
  }
  if (second !== undefined) return undefined;
  if (event === DEPOSIT) return { ...moved, from: ZERO, to: addressOf(first), isWrapping: true };
  if (event === WITHDRAWAL) return { ...moved, from: addressOf(first), to: ZERO, isWrapping: true };
  return undefined;
}

/** Removes duplicates: some wrapped assets log a `Transfer` in addition to the WETH9 event. */
function once(movements: readonly LoggedMovement[]): TokenMovement[] {
  const keyOf = ({ token, from, to, rawAmount }: TokenMovement) => `${token} ${from} ${to} ${rawAmount}`;
  const transferred = new Map<string, number>();
  for (const moved of movements) {
    if (!moved.isWrapping) transferred.set(keyOf(moved), (transferred.get(keyOf(moved)) ?? 0) + 1);
  }
  return movements.flatMap(({ isWrapping, ...moved }) => {
    const left = isWrapping ? (transferred.get(keyOf(moved)) ?? 0) : 0;
    if (left === 0) return moved;
    transferred.set(keyOf(moved), left - 1);
    return [];
  });
}

function addressOf(topic: string): string {
  return `0x${topic.slice(-40)}`;
}
