import { LRUCache } from 'lru-cache';
import { checksumAddress } from '../../engine/signing/ethereum/signer.ts';
import type { ReadBlock } from './evm-blocks.ts';

/*
 * All cells of a process read the transfers of a chain through one `SharedBlocks`. A block is requested once, by the
 * cell that needs it first, and kept for the others. Each cell has its own position in its own database, so a cell that
 * was unavailable catches up alone; the blocks that are no longer kept are requested again.
 */

/** A final block, with its recipients as wallets store them. */
export interface FinalBlock extends ReadBlock {
  /** The recipients as wallets store them, by lower-case address. */
  readonly recipients: ReadonlyMap<string, string>;
}

/** Reads the head and the blocks of a chain. */
export interface BlockReader {
  head(): Promise<bigint>;
  block(number: bigint): Promise<FinalBlock>;
}

export interface SharedBlocks extends BlockReader {
  /** Returns the hash of a kept block. */
  keptHash(number: bigint): string | undefined;
  /** Drops everything that is kept. Call it when kept blocks were replaced. */
  drop(): void;
  /** Returns whether no other cell has reported that the blocks after this one were replaced. */
  isFirstReport(hash: string): boolean;
}

/** How long a head is shared. Each cell reads it once a second, so a single cell always gets a new one. */
const HEAD_MS = 900;

/** CHOICE: the number of transfers in the blocks that are kept for other cells, about 10 MB for each chain. */
const MAX_KEPT_TRANSFERS = 20_000;

/**
 * Shares what is read from a chain. Concurrent requests for the same block share one response in any case.
 *
 * @param keepsBlocks whether several cells read the same blocks, so that blocks are kept for them.
 */
export function shareBlocks(reader: BlockReader, keepsBlocks: boolean): SharedBlocks {
  const kept = new LRUCache<bigint, FinalBlock>({
    maxSize: MAX_KEPT_TRANSFERS,
    sizeCalculation: ({ transfers }) => 1 + transfers.length,
  });
  const reading = new Map<bigint, Promise<FinalBlock>>();
  let head: { readonly number: Promise<bigint>; readonly untilMs: number } | undefined;
  let drops = 0;
  let reported: string | undefined;

  async function read(number: bigint): Promise<FinalBlock> {
    const dropsBefore = drops;
    const block = await reader.block(number);
    if (keepsBlocks && drops === dropsBefore) kept.set(number, block);
    return block;
  }

  return {
    head() {
      if (head !== undefined && performance.now() < head.untilMs) return head.number;
      const asked = { number: reader.head(), untilMs: performance.now() + HEAD_MS };
      head = asked;
      asked.number.catch(() => {
        if (head === asked) head = undefined;
      });
      return asked.number;
    },
    async block(number) {
      const known = kept.get(number) ?? reading.get(number);
      if (known !== undefined) return known;
      const asked = read(number).finally(() => {
        if (reading.get(number) === asked) reading.delete(number);
      });
      reading.set(number, asked);
      return asked;
    },
    keptHash: (number) => kept.peek(number)?.hash,
    isFirstReport(hash) {
      const isFirst = !keepsBlocks || hash !== reported;
      reported = hash;
      return isFirst;
    },
    drop() {
      drops += 1;
      kept.clear();
      reading.clear();
      head = undefined;
    },
  };
}

/**
 * Adds the recipients to a block. Computing a checksum takes longer than anything else that a cell does with a block.
 */
export function withRecipients(block: ReadBlock): FinalBlock {
  const recipients = new Map(
    block.transfers.map(({ recipient }) => [recipient, checksumAddress(recipient.slice(2))]),
  );
  return { ...block, recipients };
}
