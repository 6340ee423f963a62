import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToBase58, utf8ToBytes } from '../../../../engine/crypto/encoding.ts';
import { type Blocks, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { makePool, type Pool } from '../pool.ts';
import type { World } from '../world.ts';
import { makeSolanaMachine } from './machine.ts';
import type { SolanaPlan } from './plan.ts';
import { makeSolanaState, type SolanaState } from './state.ts';

/** Number of blocks for which a blockhash stays valid. */
export const BLOCKHASH_LIFE = 150;

/** The components of one simulated Solana chain. Every slot has a block. */
export interface SolanaParts {
  readonly world: World;
  readonly caip2: string;
  readonly state: SolanaState;
  readonly pool: Pool<SolanaPlan>;
  readonly blocks: Blocks;
  blockhashAt(height: number): string;
  /** Whether the blockhash is valid for the next block. */
  isAlive(blockhash: string): boolean;
  /** Runs `work` in one transaction of the store, after processing due blocks. */
  atHead<T>(work: () => T): Promise<T>;
}

export function makeSolanaParts(world: World, caip2: string): SolanaParts {
  const { store, clock, confirmAfterMs } = world;
  const state = makeSolanaState(world, caip2);
  const pool = makePool<SolanaPlan>(store, caip2, world.drawFault);
  const blockhashAt = (height: number): string =>
    bytesToBase58(sha256(utf8ToBytes(`block ${height} of ${caip2}`)));
  const isAlive = (blockhash: string): boolean => {
    // Reads the stored height, because this also runs while a block is being created: its parent's height counts.
    const row = store.first<{ height: number }>('select height from chains where caip2 = ?', caip2);
    const height = row?.height ?? 0;
    for (let age = 0; age <= BLOCKHASH_LIFE && age <= height; age += 1) {
      if (blockhashAt(height - age) === blockhash) return true;
    }
    return false;
  };
  const machine = makeSolanaMachine(state, isAlive);
  const blocks = makeBlocks({ store, caip2, terms: termsOf(caip2), clock, confirmAfterMs, pool, machine });
  return { world, caip2, state, pool, blocks, blockhashAt, isAlive, atHead: blocks.atHead };
}
