import type { ChainStore } from '../store.ts';
import { hashOf } from './state.ts';
import type { Upstream } from './upstream.ts';

/**
 * The hashes of the blocks of one chain.
 *
 * CHOICE: the hash of a block is derived from its chain, its number, and the count of reorganizations at or before
 * it, so that no blocks are stored. The last 8 bytes of the hash are the number.
 */
export interface Forks {
  hashOf(number: number): string;
  /** Returns the number of the block with this hash, or undefined if the chain has no such block. */
  numberOf(hash: string): number | undefined;
  /** Replaces the blocks from this number on by new ones. Must be called in a transaction of the store. */
  replace(from: number): void;
  /** Registers a listener that is called before blocks are replaced. */
  watch(listener: (from: number) => void): void;
}

/**
 * Creates the block hashes of a chain.
 *
 * @param upstream the real chain that this chain forks.
 */
export function makeForks(
  store: ChainStore,
  caip2: string,
  upstream: Pick<Upstream, 'block' | 'blockHash'> | undefined,
): Forks {
  const listeners: ((from: number) => void)[] = [];
  const hash = (number: number): string => {
    if (upstream !== undefined && number <= upstream.block) return upstream.blockHash(number);
    const { forks } = store.first<{ forks: number }>(
      'select count(*) as forks from reorganizations where caip2 = ? and from_block <= ?',
      ...[caip2, number],
    )!;
    const text = `block ${number} of ${caip2}${forks === 0 ? '' : ` after ${forks} reorganizations`}`;
    return hashOf(text).slice(0, 50) + number.toString(16).padStart(16, '0');
  };
  return {
    hashOf: hash,
    numberOf(text) {
      const number = Number(`0x${text.slice(50)}`);
      const isOwn = Number.isSafeInteger(number) && number > (upstream?.block ?? -1);
      return isOwn && hash(number) === text ? number : undefined;
    },
    replace(from) {
      for (const listener of listeners) listener(from);
      store.run('insert into reorganizations (caip2, from_block) values (?, ?)', caip2, from);
    },
    watch: (listener) => void listeners.push(listener),
  };
}
