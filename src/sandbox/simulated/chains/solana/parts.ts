import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToBase58, utf8ToBytes } from '../../../../engine/crypto/encoding.ts';
import { loadOnce } from '../../../../engine/load-once.ts';
import { type Blocks, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { makePool, type Pool } from '../pool.ts';
import type { World } from '../world.ts';
import { prepareAccounts } from './faucet.ts';
import { makeSolanaMachine } from './machine.ts';
import type { SolanaPlan } from './plan.ts';
import type { Executor } from './runtime.ts';
import { makeSolanaState, type SolanaState } from './state.ts';

/** The number of blocks for which a blockhash stays valid. */
export const BLOCKHASH_LIFE = 150;
const MAX_HASHES = 1_000;

/** The components of one simulated Solana chain. Every slot has a block. */
export interface SolanaParts {
  readonly world: World;
  readonly caip2: string;
  readonly state: SolanaState;
  readonly pool: Pool<SolanaPlan>;
  readonly blocks: Blocks;
  readonly executor: () => Promise<Executor>;
  /** The number of later blocks after which a block is final. */
  readonly finalityBlocks: number;
  blockhashAt(height: number): string;
  /** Returns whether the blockhash is valid for the next block. */
  isAlive(blockhash: string): boolean;
  /** Processes due blocks, then runs `work` in one transaction of the store. */
  atHead<T>(work: () => T): Promise<T>;
  /** Creates the accounts that the tokens of an older or a loaded store need. */
  prepare(): void;
}

export function makeSolanaParts(world: World, caip2: string): SolanaParts {
  const { store, clock, confirmAfterMs } = world;
  const state = makeSolanaState(world, caip2);
  const pool = makePool<SolanaPlan>(store, caip2, world.drawFault);
  const hashes = new Map<number, string>();
  const blockhashAt = (height: number): string => {
    const known = hashes.get(height);
    if (known !== undefined) return known;
    const hash = bytesToBase58(sha256(utf8ToBytes(`block ${height} of ${caip2}`)));
    if (hashes.size >= MAX_HASHES) hashes.clear();
    hashes.set(height, hash);
    return hash;
  };
  const isAlive = (blockhash: string): boolean => {
    // Read the stored height, because this also runs while a block is being made. The height is then that of its
    // parent.
    const row = store.first<{ height: number }>('select height from chains where caip2 = ?', caip2);
    const height = row?.height ?? 0;
    for (let age = 0; age <= BLOCKHASH_LIFE && age <= height; age += 1) {
      if (blockhashAt(height - age) === blockhash) return true;
    }
    return false;
  };
  // Loaded for the first transaction, because a chain that only keeps balances needs no executor.
  const executor = loadOnce(async (): Promise<Executor> => {
    const { loadLiteSvm, makeLiteSvmExecutor, NOT_INSTALLED } = await import('./litesvm.ts');
    let limit = NOT_INSTALLED;
    try {
      const module = await (world.liteSvm ?? loadLiteSvm)();
      if (module !== undefined) return makeLiteSvmExecutor(module, { blockhashAt, log: world.log });
    } catch (error) {
      limit = `the installed package litesvm cannot be loaded: ${error instanceof Error ? error.message : error}`;
      world.log?.warn({ caip2, error: limit }, 'Solana runs only its usual programs');
    }
    return (await import('./runtime.ts')).ownExecutor(limit);
  });
  const machine = makeSolanaMachine(caip2, { state, executor, isBlockhashAlive: isAlive });
  const terms = termsOf(caip2);
  const blocks = makeBlocks({
    ...{ store, caip2, terms, clock, confirmAfterMs, pool, machine },
    begin: (block) => prepareAccounts({ world, caip2, state }, block),
  });
  const parts: SolanaParts = {
    ...{
      world,
      caip2,
      state,
      pool,
      blocks,
      executor,
      finalityBlocks: terms.finalityBlocks,
      blockhashAt,
      isAlive,
      atHead: blocks.atHead,
    },
    prepare() {
      if (store.first('select 1 from chains where caip2 = ?', caip2) === undefined) return;
      prepareAccounts(parts, blocks.head());
    },
  };
  parts.prepare();
  return parts;
}
