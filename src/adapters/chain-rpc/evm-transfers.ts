import type { ChainTransfer, TransferPage, TransferReading } from '../../ports/chain-transfers.ts';
import type { Log } from '../../ports/log.ts';
import { checksumAddress } from '../../signing/ethereum/address.ts';
import { quantity, record } from './answers.ts';
import {
  agreedBlock,
  type BlockTransfer,
  hasSucceeded,
  type ReadBlock,
  readBlock,
  readHeader,
} from './evm-blocks.ts';
import { allEqual, type Nodes } from './nodes.ts';

/** Blocks of one page: bounds the work of a page while an outage is made up for. */
const PAGE_BLOCKS = 16;
/** Blocks that are asked for at once. */
const AT_ONCE = 4;
/** Hashes of blocks before the position, by which the last common block of a reorganization is found. */
const KEPT_HASHES = 64;
/** Enough of a hash to recognize a block of one chain. */
const HASH_CHARACTERS = 18;
/** Heads that are further apart are reported: the lowest one counts. */
const LAGGING_BLOCKS = 64n;

export interface EvmTransfersOptions {
  readonly nodes: Nodes;
  readonly caip2: string;
  readonly log: Log;
  /** Blocks until a transfer counts as final; 1 is the block that includes it. */
  readonly confirmations: bigint;
  /** Lower-case addresses of the tokens that are still read in blocks with too many transfers for one response. */
  readonly namedTokens: readonly string[];
}

/** Where the next page begins. */
interface Cursor {
  /** The last block that was read, completely unless `place` is set. */
  readonly block: bigint;
  /** The last transfer in that block that was returned. */
  readonly place: string | undefined;
  /** Beginnings of the hashes of that block and of those before it. */
  readonly hashes: readonly string[];
}

/**
 * Reads the transfers of final blocks: native value that transactions carry, and `Transfer` logs of ERC-20 tokens.
 * Each block is asked for once, whatever the number of watched addresses. All nodes that respond must agree on it.
 *
 * CHOICE: reading begins with the block that is final at the first reading. Native value that contracts pass on in
 * internal calls is in no list that plain JSON-RPC has, and is not found.
 */
export async function evmTransfersAfter(
  options: EvmTransfersOptions,
  reading: TransferReading,
): Promise<TransferPage> {
  const cursor = readCursor(reading.after);
  const last = (await lowestHead(options)) - options.confirmations + 1n;
  if (last < 0n || (cursor !== undefined && last <= cursor.block && cursor.place === undefined)) {
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
  return readFrom(options, { cursor, last, reading });
}

async function readFrom(
  options: EvmTransfersOptions,
  { cursor, last, reading }: { cursor: Cursor; last: bigint; reading: TransferReading },
): Promise<TransferPage> {
  const transfers: ChainTransfer[] = [];
  let at = cursor;
  const first = cursor.place === undefined ? cursor.block + 1n : cursor.block;
  const end = last < first + BigInt(PAGE_BLOCKS) - 1n ? last : first + BigInt(PAGE_BLOCKS) - 1n;
  for (let from = first; from <= end; from += BigInt(AT_ONCE)) {
    const size = end - from + 1n < AT_ONCE ? Number(end - from + 1n) : AT_ONCE;
    const numbers = Array.from({ length: size }, (_, index) => from + BigInt(index));
    const blocks = await Promise.all(numbers.map((number) => blockAt(options, number)));
    for (const block of blocks) {
      const isPartial = at.place !== undefined;
      const isSame = isPartial ? short(block.hash) === at.hashes[0] : isNext(at, block);
      if (!isSame) return { transfers, position: writeCursor(await lastCommon(options, at)), hasMore: true };
      const found = await watchedIn(block, at.place, reading.watched);
      const taken = found.slice(0, reading.limit - transfers.length);
      transfers.push(...(await executed(options, block, taken)));
      const hashes = isPartial ? at.hashes : [short(block.hash), ...at.hashes].slice(0, KEPT_HASHES);
      const place = taken.length < found.length ? taken.at(-1)?.place : undefined;
      at = { block: block.number, place, hashes };
      if (place !== undefined) return { transfers, position: writeCursor(at), hasMore: true };
    }
  }
  return { transfers, position: writeCursor(at), hasMore: at.block < last };
}

/** The transfers of a block after a place whose recipients are watched. */
async function watchedIn(
  { transfers }: ReadBlock,
  place: string | undefined,
  watched: TransferReading['watched'],
): Promise<readonly BlockTransfer[]> {
  const rest = transfers.slice(1 + transfers.findIndex((transfer) => transfer.place === place));
  const recipients = new Map(rest.map(({ recipient }) => [recipient, checksumAddress(recipient.slice(2))]));
  if (recipients.size === 0) return [];
  const ours = await watched.among([...recipients.values()]);
  return rest.filter(({ recipient }) => ours.has(recipients.get(recipient)!));
}

/** Without the value of transactions that were reverted: their block contains them too. */
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
 * A reorganization went deeper than the confirmations: the position moves back to the last block that is still in the
 * chain. Transfers that the new blocks contain again have the same key.
 */
async function lastCommon(options: EvmTransfersOptions, { block, hashes }: Cursor): Promise<Cursor> {
  let depth = 0;
  for (; depth < hashes.length - 1; depth += 1) {
    const { hash } = await headerAt(options, block - BigInt(depth));
    if (short(hash) === hashes[depth]) break;
  }
  const common = block - BigInt(depth);
  const { caip2, confirmations, log } = options;
  log.error(
    { caip2, block: String(common), depth, confirmations: Number(confirmations) },
    'blocks were replaced that had all their confirmations; their transfers are read again',
  );
  const { hash } = await headerAt(options, common);
  return { block: common, place: undefined, hashes: [short(hash), ...hashes.slice(depth + 1)] };
}

/** The lowest head of the nodes, so that all of them have the blocks that are read. */
function lowestHead({ nodes, caip2, log }: EvmTransfersOptions): Promise<bigint> {
  return nodes.compare({
    what: 'the newest block',
    ask: async (read) => quantity('eth_blockNumber', await read('eth_blockNumber')),
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
  const { block, place, hashes } = record('position', JSON.parse(position));
  return { block: BigInt(block as string), place: place as string | undefined, hashes: hashes as string[] };
}
